package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// process is a Locker with a Tap between it and the store.
type process struct {
	*lock.Locker
	tap *Tap
}

// processes returns n Lockers on connections of their own.
func (h Harness) processes(t *testing.T, n int, o lock.Options) []process {
	t.Helper()
	ps := make([]process, n)
	for i := range ps {
		tap := NewTap(h.backend(t))
		ps[i] = process{Locker: lock.New(tap, o), tap: tap}
		t.Cleanup(func() {
			tap.Open()
			if err := ps[i].Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	return ps
}

// backend returns one that is closed at the end of the test.
func (h Harness) backend(t *testing.T) lock.Backend {
	t.Helper()
	b := h.Connect(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close backend: %v", err)
		}
	})
	return b
}

// recovers reports whether a key becomes free after its holder's end.
func (h Harness) recovers() bool { return h.Expires || h.Cut != nil }

// cut lets the store hear no more of the process.
func (h Harness) cut(p process) {
	p.tap.Cut()
	if h.Cut != nil {
		h.Cut(p.tap.Backend)
	}
}

// bounded returns a context that ends with the suite's patience.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// key returns one that no other test uses.
func key(t *testing.T) string {
	return fmt.Sprintf("%s/%08x", t.Name(), rand.Uint32())
}

// isNotAcquired reports whether err is an ErrNotAcquired with these reasons.
func isNotAcquired(err error, reasons ...error) bool {
	for _, r := range append(reasons, lock.ErrNotAcquired) {
		if !errors.Is(err, r) {
			return false
		}
	}
	return true
}

// acquire fails the test if the lease cannot be had.
func acquire(t *testing.T, p process, key string) *lock.Lease {
	t.Helper()
	lease, err := insist(bounded(t), p, key)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return lease
}

// insist asks until there is an answer: a machine that stands still for a second costs a request all of its time.
func insist(ctx context.Context, p process, key string) (*lock.Lease, error) {
	for {
		lease, err := p.Acquire(ctx, key)
		if !errors.Is(err, lock.ErrNoAnswer) || ctx.Err() != nil {
			return lease, err
		}
	}
}

// release fails the test if the lease was lost.
func release(t *testing.T, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// releaseAnyway releases a lease with a short TTL, which a machine that stands still may lose.
func releaseAnyway(t *testing.T, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v", err)
	}
}

// turn acquires and releases the key in a goroutine, and returns where its error will be.
func turn(t *testing.T, p process, key string) <-chan error {
	done, ctx := make(chan error, 1), bounded(t)
	go func() {
		lease, err := insist(ctx, p, key)
		if err == nil {
			err = lease.Release()
		}
		done <- err
	}()
	return done
}

// wait fails the test if the signal does not come.
func wait(t *testing.T, what string, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened for %v", what, patience)
	}
}

// inQueue waits until n callers of the process wait in its queues.
func inQueue(t *testing.T, p process, n int) {
	t.Helper()
	queued := make(chan struct{})
	ctx := bounded(t)
	go func() {
		defer close(queued)
		for p.Queued() < n && ctx.Err() == nil {
			runtime.Gosched()
		}
	}()
	wait(t, "waiters in the queue", queued)
}

// standstill watches whether this machine runs, and returns a function that reports for how long at a stretch it did not,
// at most, since the call.
//
// Holder and successor of these tests are in one process. If that stands still from before the end of the one until after
// the beginning of the other, the timers of both fire at once, and which is first proves nothing: the test repeats such a
// round.
func standstill(t *testing.T) (longest func() time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var worst time.Duration
	last := time.Now()
	look := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		worst, last = max(worst, now.Sub(last)), now
		return worst
	}
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		beat := time.NewTicker(2 * time.Millisecond)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				look()
			case <-done:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		watch.Wait()
	})
	return look
}
