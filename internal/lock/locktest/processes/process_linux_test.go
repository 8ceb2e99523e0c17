package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// process is a child, as its parent has it.
type process struct {
	name string
	told *told
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{}
	err  error // of its end, once done is closed
}

// start starts a child that tells what it does. It ends with the test at the
// latest, and with this process however that ends.
func start(t *testing.T, w *told, a arguments) *process {
	t.Helper()
	args, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childArgs+"="+string(args))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: a.Name, told: w, cmd: cmd, in: in, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // whose end Pdeathsig takes for the parent's
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			err = errors.Join(p.listen(out), cmd.Wait())
		}
		p.err = err
		close(p.done)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // also while stopped
		<-p.done
	})
	return p
}

func (p *process) listen(out io.Reader) error {
	for reports := json.NewDecoder(out); ; {
		var r report
		if err := reports.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s says what nobody understands: %w", p.name, err)
		}
		p.told.add(r)
	}
}

// holds makes the child hold a lease for as long as it can, and returns it.
func (p *process) holds(t *testing.T) report {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, "hold"); err != nil {
		t.Fatal(err)
	}
	return p.told.await(t, p.name+" holds a key", func(r report) bool { return r.Child == p.name && r.Held && !r.Ended })
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// busy waits until the child had its turn more often.
func (p *process) busy(t *testing.T) {
	t.Helper()
	from, turns := clock(), make(map[int64]bool)
	p.told.await(t, p.name+" takes turns", func(r report) bool {
		if r.Child == p.name && r.Ended && r.Lease.Begin.After(from) {
			turns[r.ID] = true
		}
		return len(turns) >= 2*goroutines
	})
}

// ends waits until the child, whose input has ended, has as well.
func (p *process) ends(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
		if p.err != nil {
			t.Errorf("%s: %v", p.name, p.err)
		}
	case <-time.After(patience):
		t.Errorf("%s has not ended for %v", p.name, patience)
	}
}
