//go:build unix

package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

const pausedServer = "SHOP_TEST_PAUSED" // address of Redis: this process is the one that is stopped

// "A lease is trusted from before its request was sent until TTL minus Margin, on the monotonic clock": a process that
// holds the key is stopped until another holds it. When it goes on, its first look says that its time is over.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	const rounds = 20
	server := startMiniredis(t)
	locker := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{})
	holder := startHolder(t, server.Addr())
	for round := range rounds {
		var before int64
		holder.ask(t, "acquire", &before)
		holder.signal(t, syscall.SIGSTOP)
		err := locker.Do(t.Context(), "key", func(_ context.Context, lease *lock.Lease) error {
			holder.signal(t, syscall.SIGCONT)
			var remaining time.Duration // in nanoseconds
			if holder.ask(t, "look", &remaining); remaining != 0 || lease.Fence() <= before {
				t.Errorf("round %d: %v remain of a lease whose successor is there, with fence %d after %d", round, remaining, lease.Fence(), before)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// TestPausedHolder_process is the other process of TestPausedHolder, and does nothing in any other.
func TestPausedHolder_process(t *testing.T) {
	addr := os.Getenv(pausedServer)
	if addr == "" {
		t.Skip("runs in a process of TestPausedHolder")
	}
	locker := lock.New(lock.NewRedis(connect(t, addr)), lock.Options{TTL: 100 * time.Millisecond})
	var lease *lock.Lease
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		switch commands.Text() {
		case "acquire":
			err := lock.ErrNoAnswer // on a machine that stands still
			for errors.Is(err, lock.ErrNoAnswer) {
				lease, err = locker.Acquire(t.Context(), "key")
			}
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(lease.Fence())
		case "look":
			fmt.Println(int64(lease.Remaining()))
			<-lease.Context().Done()
			_ = lease.Release() // lost
		}
	}
}

// holderProcess answers commands.
type holderProcess struct {
	cmd *exec.Cmd
	in  io.Writer
	out io.Reader
}

func startHolder(t *testing.T, addr string) *holderProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPausedHolder_process$")
	cmd.Env = append(os.Environ(), pausedServer+"="+addr)
	cmd.Stderr = os.Stderr
	in, failed := cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	if err := errors.Join(failed, err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // also while stopped
		_ = cmd.Wait()
	})
	return &holderProcess{cmd: cmd, in: in, out: out}
}

// ask sends a command and reads the answer.
func (h *holderProcess) ask(t *testing.T, command string, answer any) {
	t.Helper()
	if _, err := fmt.Fprintln(h.in, command); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(h.out, answer); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

func (h *holderProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
