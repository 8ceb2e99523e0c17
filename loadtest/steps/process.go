package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"example.com/shop/loadtest/cleanup"
)

// process is a shop that can be paused and killed.
type process struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when it was waited for
	err   error         // how it ended; read after ended
}

// starting is how long a shop has to start.
const starting = 2 * time.Minute

// startProcess starts this program once more, as a shop.
func startProcess(ctx context.Context, where place) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self) //nolint:gosec,noctx // itself; it ends with its stdin, not with a context
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.SysProcAttr = alone()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a shop: %w", err)
	}
	p := &process{cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	told, err := p.greet(ctx, stdin, stdout, where)
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	if err == nil && told.Error != "" {
		err = errors.New(told.Error)
	}
	if err != nil {
		return nil, cleanup.Join(fmt.Errorf("start instance 1: %w", err), p.kill())
	}
	p.url = told.URL
	return p, nil
}

// greet tells the child where to keep things and returns what it says.
func (p *process) greet(ctx context.Context, stdin io.Writer, stdout io.Reader, where place) (told hello, err error) {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	silent := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer silent()
	if err := json.NewEncoder(stdin).Encode(where); err != nil {
		return told, err
	}
	err = json.NewDecoder(stdout).Decode(&told)
	return told, errors.Join(err, ctx.Err())
}

// pause stops the process as it stands: not one instruction more.
func (p *process) pause() error { return stand(p.cmd.Process) }

// unpause lets it go on.
func (p *process) unpause() error { return carryOn(p.cmd.Process) }

// kill ends it at once, and returns when it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// close lets it finish, also if it is paused.
func (p *process) close() error {
	select {
	case <-p.ended:
		return nil // killed, as planned
	default:
	}
	_ = p.unpause()
	_ = p.stdin.Close()
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("instance 1: %w", p.err)
		}
		return nil
	case <-time.After(2 * stopping):
		return errors.Join(errors.New("instance 1 did not stop and was killed"), p.kill())
	}
}
