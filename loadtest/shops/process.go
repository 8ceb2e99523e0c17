package shops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/shop/loadtest/shopclient"
)

const stopLimit = 20 * time.Second // after which a process is killed

// Build builds a program of a checkout, such as cmd/shop, into a file of a folder that the caller removes. An empty
// checkout is this one. The flags are for go build.
func Build(ctx context.Context, checkout, program, file string, flags ...string) error {
	args := slices.Concat([]string{"build", "-o", file}, flags, []string{"example.com/shop/" + program})
	build := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the user's choice
	build.Dir = checkout
	// An interrupted go command may leave its temporary folder behind, and a killed one its compilers.
	build.Env = append(os.Environ(), "GOTMPDIR="+filepath.Dir(file))
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

// Program is a built cmd/shop. Its instances accept the keys.
type Program struct {
	File string
	*shopclient.Keys
}

// Migrate brings the database up to date. The variables name it.
func (p Program) Migrate(ctx context.Context, variables []string) error {
	migrate := exec.CommandContext(ctx, p.File, "migrate") //nolint:gosec // the user's choice
	migrate.Env = environ(variables)
	if out, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("shop migrate: %w: %s", err, out)
	}
	return nil
}

// Start starts one of n instances that share the processors, and returns when it serves. Passwords are for variables.
func (p Program) Start(ctx context.Context, n int, variables []string, flags ...string) (*Process, error) {
	args := append([]string{"serve", "--listen=127.0.0.1:0", "--operator-listen=127.0.0.1:0"}, flags...)
	process, err := Start(ctx, n, p.File, append(p.Environ(), variables...), args...)
	if err == nil {
		process.keys = p.Keys
	}
	return process, err
}

// Process is a server in a process of its own, which can be measured, paused and killed.
type Process struct {
	*os.Process
	Addr     string // of the shop
	Operator string // address of the operator's API

	keys  *shopclient.Keys
	ended chan struct{} // closed when the process has ended
}

// Start runs one of n programs that share the processors. Each program gets its share, at least one:
// otherwise each would use all processors, and keep waking threads for them. Start returns when the
// program has printed the addresses that it serves, as a shop does. The program has this process's
// stderr, and its environment without the variables of a shop.
func Start(ctx context.Context, n int, program string, variables []string, args ...string) (*Process, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // the user's own programs
	cmd.Env = append(environ(variables), fmt.Sprint("GOMAXPROCS=", max(1, runtime.GOMAXPROCS(0)/n)))
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	p := &Process{Process: cmd.Process, ended: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })() // which ends its output
	_, unread := fmt.Fscanf(stdout, "The shop is open at http://%s\nThe operator's API is at http://%s\n", &p.Addr, &p.Operator)
	go func() {
		defer close(p.ended)
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()
	}()
	if unread != nil {
		err = p.Kill() // unless it has ended by itself
		return nil, errors.Join(fmt.Errorf("%s does not serve: %v", cmd.Path, cmd.ProcessState), ctx.Err(), err)
	}
	return p, nil
}

// environ returns the environment for a process: this process's own, with the given variables of a shop.
func environ(variables []string) []string {
	own := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "SHOP_") })
	return append(own, variables...)
}

// Client returns a client of a shop that a Program started, with its keys.
func (p *Process) Client(conns *http.Client) *shopclient.Client {
	return shopclient.New("http://"+p.Addr, conns).WithKeys(p.keys, "http://"+p.Operator)
}

// Pause stops the process, as a long garbage collection or the move of a virtual machine does.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Stop ends the process by SIGTERM, and waits for its end. It first resumes a paused process. It is no error if the
// process has already ended: Ctrl-C ends a whole group.
func (p *Process) Stop() error {
	_, _ = p.Resume(), p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("process %d did not end within %v and was killed", p.Pid, stopLimit), p.Kill())
	}
}

// Kill ends the process at once, and returns when the process has ended.
func (p *Process) Kill() error {
	if err := p.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}
