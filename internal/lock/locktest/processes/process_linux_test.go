package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/lock/locktest/history"
)

// process is a child, as its parent sees it.
type process struct {
	name   string
	record *record
	cmd    *exec.Cmd
	in     io.WriteCloser
	done   chan struct{}
	err    error // of its end, once done is closed
}

// start starts a child, which reports to w. It ends with the test at the latest, and with this process however that
// ends.
func start(t *testing.T, w *record, a arguments) *process {
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
	p := &process{name: a.Name, record: w, cmd: cmd, in: in, done: make(chan struct{})}
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
			return fmt.Errorf("%s: malformed report: %w", p.name, err)
		}
		p.record.add(r)
	}
}

// holds makes the child hold a lease for as long as it can, and returns it.
func (p *process) holds(t *testing.T) report {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, "hold"); err != nil {
		t.Fatal(err)
	}
	return p.record.await(t, p.name+" holds a key", func(r report) bool { return r.Child == p.name && r.Held && !r.Ended })
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
	p.record.await(t, p.name+" takes turns", func(r report) bool {
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

// patience bounds every wait. Nothing takes this long unless it hangs.
const patience = 20 * time.Second

// record is what the children have reported so far.
type record struct {
	mu      sync.Mutex
	reports []report
	more    chan struct{} // closed when there is another
}

func newRecord() *record { return &record{more: make(chan struct{})} }

func (w *record) add(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
	close(w.more)
	w.more = make(chan struct{})
}

// since returns the reports after the first n, and what is closed when there is another.
func (w *record) since(n int) (reports []report, more <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reports[n:]), w.more
}

// await returns the report that is looked for, and fails the test if it does not come.
func (w *record) await(t *testing.T, what string, find func(report) bool) report {
	t.Helper()
	limit := time.After(patience)
	for n := 0; ; {
		reports, more := w.since(n)
		if i := slices.IndexFunc(reports, find); i >= 0 {
			return reports[i]
		}
		n += len(reports)
		select {
		case <-more:
		case <-limit:
			t.Fatalf("%s: no report for %v", what, patience)
		}
	}
}

// history returns one of all leases. Of a lease whose holder was killed the last report is that of its begin.
func (w *record) history() *history.History {
	type id struct {
		child string
		n     int64
	}
	last := make(map[id]report)
	reports, _ := w.since(0)
	for _, r := range reports {
		last[id{r.Child, r.ID}] = r
	}
	h := new(history.History)
	for _, r := range last {
		h.Leases = append(h.Leases, r.Lease)
	}
	return h
}
