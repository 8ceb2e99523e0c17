package locktest

import (
	"context"
	"sync"
	"testing"

	"example.com/shop/internal/lock"
)

// exclusion: of all leases on a key, one at a time is trusted, and fences rise
// from each to the next, whichever process has it.
func exclusion(t *testing.T, h Harness) {
	const lockers, goroutines, turns = 4, 64, 4
	k := key(t)
	var (
		holders int // guarded by nothing but the lock: the race detector watches
		count   int
		last    int64
		wg      sync.WaitGroup
	)
	for _, p := range h.processes(t, lockers, lock.Options{TTL: long}) {
		for range goroutines / lockers {
			wg.Go(func() {
				for range turns {
					err := p.Do(bounded(t), k, func(_ context.Context, lease *lock.Lease) error {
						if holders++; holders != 1 {
							t.Errorf("%d holders at once", holders)
						}
						if h.Fences && lease.Fence() <= last {
							t.Errorf("fence %d after %d", lease.Fence(), last)
						}
						last = lease.Fence()
						count++
						holders--
						return nil
					})
					if err != nil {
						t.Errorf("Do: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if want := goroutines * turns; count != want {
		t.Errorf("%d turns, want %d", count, want)
	}
}

// tryAcquire: asks once; held is ErrNotAcquired, and leaves nothing behind.
func tryAcquire(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease, err := ps[0].TryAcquire(bounded(t), k)
	if err != nil {
		t.Fatalf("TryAcquire of a free key: %v", err)
	}
	for i, p := range ps {
		if _, err := p.TryAcquire(bounded(t), k); !isNotAcquired(err) {
			t.Errorf("process %d: TryAcquire of a held key: %v, want ErrNotAcquired", i, err)
		}
	}
	if n := ps[1].tap.Count(Acquire); n != 1 {
		t.Errorf("asked the store %d times, want 1", n)
	}
	release(t, lease)
	// Not tried once: of a store of many nodes some may not know of the release.
	release(t, acquire(t, ps[1].Locker, k))
}

// closing: Close ends waiting, and gives held keys back.
func closing(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0].Locker, k)
	failed := make(chan error, 2)
	for range 2 { // the first waits in the store's line, the second in the process's
		go func() {
			_, err := ps[1].Acquire(bounded(t), k)
			failed <- err
		}()
	}
	wait(t, "waiter", ps[1].tap.Seen(Wait, 1))
	inLine(t, ps[1], k, 1)
	for _, p := range []process{ps[1], ps[0]} {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for range 2 {
		if err := <-failed; !isNotAcquired(err, lock.ErrClosed) {
			t.Errorf("waiter got %v, want ErrNotAcquired and ErrClosed", err)
		}
	}
	wait(t, "end of the lease", lease.Context().Done())
	if _, err := ps[0].Acquire(bounded(t), k); !isNotAcquired(err, lock.ErrClosed) {
		t.Errorf("Acquire after Close: %v, want ErrNotAcquired and ErrClosed", err)
	}
	release(t, acquire(t, h.processes(t, 1, lock.Options{TTL: long})[0].Locker, k))
}
