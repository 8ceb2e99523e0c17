package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/shop/loadtest/cleanup"
)

const (
	startLimit = time.Minute
	stopLimit  = 15 * time.Second
	lastWords  = 4 << 10 // of a process' stderr, for an error message
)

// Process is a server that serves.
type Process struct {
	Greeting string // the rest of the line by which it said that it is ready
	cmd      *exec.Cmd
	stderr   *tail
	ended    chan struct{} // closed when the process has
}

// Start runs a program and returns when it prints a line that begins with ready.
// Variables are added to the environment, from which those that begin with SHOP_
// are left out.
func Start(ctx context.Context, path string, args, variables []string, ready string) (*Process, error) {
	cmd := exec.Command(path, args...) //nolint:gosec,noctx // the caller's own programs; Stop ends them
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "SHOP_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, variables...)
	p := &Process{cmd: cmd, stderr: &tail{}, ended: make(chan struct{})}
	cmd.Stderr = p.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	greeting := make(chan string, 1)
	go p.read(stdout, ready, greeting)
	select {
	case p.Greeting = <-greeting:
		return p, nil
	case <-p.ended:
		err = fmt.Errorf("%s ended at its start: %s", path, p.stderr)
	case <-time.After(startLimit):
		err = fmt.Errorf("%s is not ready after %v: %s", path, startLimit, p.stderr)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, cleanup.Join(err, p.Stop())
}

// read takes all that the process prints until it ends.
func (p *Process) read(stdout io.Reader, ready string, greeting chan<- string) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), ready); ok {
			greeting <- strings.TrimSpace(rest)
			break
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
	_ = p.cmd.Wait()
	close(p.ended)
}

// PID is the operating system's number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop asks the process to end, and kills it if it does not. One that has ended
// already, as Ctrl-C ends a whole group, is as good.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopLimit):
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("process %d did not end within %v and was killed: %s", p.PID(), stopLimit, p.stderr)
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - lastWords; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
