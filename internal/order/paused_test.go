//go:build unix

package order_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

const (
	pausedTTL  = 100 * time.Millisecond // of the one that is stopped
	pausedKey  = "sku:mug"
	holderArgs = "SHOP_TEST_HOLDER" // "redis address|SQLite file": this process is the holder
)

// "a paused process can act late; the fence, checked by the database inside the same transaction, is what makes it
// safe": a process that holds the lease is stopped until another has had it. When it goes on, it knows before it starts
// a commit that its time is over; and if it did not, the database would refuse.
func TestPausedHolder(t *testing.T) {
	if testing.Short() {
		t.Skip("stops a process 100 times; not with -short")
	}
	const rounds = 100
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := store.SQLite(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := setup(t, db)
	b.supply(t, "mug", 2*rounds)

	holder := startHolder(t, server.Addr(), path)
	locker := newRedisLocker(t, server.Addr())
	for round := range rounds {
		holder.say(t, "acquire")
		holder.expect(t, "acquired")
		holder.signal(t, syscall.SIGSTOP)
		err := locker.Do(t.Context(), pausedKey, func(ctx context.Context, lease *lock.Lease) error {
			if err := takeOne(ctx, db, lease); err != nil {
				return err
			}
			holder.say(t, "commit")
			holder.signal(t, syscall.SIGCONT)
			holder.expect(t, "remaining 0s, context ended true, database says stale fence")
			return nil
		})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	sku, err := b.db.SKU(t.Context(), "mug")
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(rounds); sku.Level.Available != want || sku.Level.Reserved != want {
		t.Errorf("level %+v, want %d taken: one in each round", sku.Level, want)
	}
}

// TestHolder is the other process of TestPausedHolder, and does nothing in any other.
func TestHolder(t *testing.T) {
	addr, path, isHolder := strings.Cut(os.Getenv(holderArgs), "|")
	if !isHolder {
		t.Skip("runs in a process of TestPausedHolder")
	}
	ctx := t.Context()
	db, err := store.SQLite(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	locker := lock.New(lock.NewRedis(client), lock.Options{TTL: pausedTTL})
	var lease *lock.Lease
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		switch commands.Text() {
		case "acquire":
			if lease, err = locker.Acquire(ctx, pausedKey); err != nil {
				t.Fatal(err)
			}
			fmt.Println("acquired")
		case "commit":
			left := lease.Remaining() // the last look before a commit
			<-lease.Context().Done()
			err := takeOne(ctx, db, lease)
			fmt.Printf("remaining %v, context ended %v, database says %v\n",
				left, errors.Is(context.Cause(lease.Context()), lock.ErrLost), err)
			_ = lease.Release()
		}
	}
}

// takeOne takes a unit as the strategy redis does.
func takeOne(ctx context.Context, db *store.Store, lease *lock.Lease) error {
	err := db.InTx(ctx, nil, func(tx order.Tx) error {
		return tx.Take(stock.Fenced, stock.Take{SKU: "mug", Units: 1, Fence: lease.Fence()})
	})
	if errors.Is(err, order.ErrStaleFence) {
		return order.ErrStaleFence
	}
	return err
}

// holderProcess is a child that runs holdForParent.
type holderProcess struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startHolder(t *testing.T, addr, path string) *holderProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHolder$")
	cmd.Env = append(os.Environ(), holderArgs+"="+addr+"|"+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // also while stopped
		_ = cmd.Wait()
	})
	return &holderProcess{cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

func (h *holderProcess) say(t *testing.T, command string) {
	t.Helper()
	if _, err := fmt.Fprintln(h.in, command); err != nil {
		t.Fatal(err)
	}
}

func (h *holderProcess) expect(t *testing.T, want string) {
	t.Helper()
	if !h.out.Scan() || h.out.Text() != want {
		t.Fatalf("holder says %q (%v), want %q", h.out.Text(), h.out.Err(), want)
	}
}

func (h *holderProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func newRedisLocker(t *testing.T, addr string) *lock.Locker {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	locker := lock.New(lock.NewRedis(client), lock.Options{})
	t.Cleanup(func() {
		if err := errors.Join(locker.Close(), client.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return locker
}
