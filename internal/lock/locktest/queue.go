package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"example.com/shop/internal/lock"
)

// wokenByRelease: "One who waits is woken by the release, not by polling", and "at most one process is woken by each": the
// holder's TTL is longer than the test.
func wokenByRelease(t *testing.T, h Harness) {
	need(t, h.Notifies, "Notifies")
	const waiters = 8
	ps, k := h.processes(t, 1+waiters, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0], k)
	leases := make(chan *lock.Lease, waiters)
	for _, p := range ps[1:] {
		go func() {
			next, err := p.Acquire(bounded(t), k)
			if err != nil {
				t.Errorf("Acquire: %v", err)
			}
			leases <- next
		}()
		wait(t, "waiter", p.tap.Seen(Wait, 1))
	}
	asked := func() (n int) {
		for _, p := range ps[1:] {
			n += p.tap.Count(Acquire)
		}
		return n
	}
	for range waiters {
		before := asked()
		release(t, lease)
		if lease = <-leases; lease == nil {
			return
		}
		if n := asked() - before; n != 1 {
			t.Errorf("a release made %d ask again, want 1", n)
		}
	}
	release(t, lease)
}

// lostNotification: a lost notification "delays [...]; it never hangs": the waiter asks again when the holder's time should
// be over, at the latest.
func lostNotification(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: short}), key(t)
	ps[1].tap.Deafen()
	lease := acquire(t, ps[0], k)
	done := turn(t, ps[1], k)
	wait(t, "waiter", ps[1].tap.Seen(Wait, 1))
	releaseAnyway(t, lease)
	if err := <-done; err != nil && !errors.Is(err, lock.ErrLost) { // had, and lost by a machine that stood still
		t.Fatalf("Acquire: %v", err)
	}
}

// storeQueue: waiters of several processes are served in the order in which they came.
func storeQueue(t *testing.T, h Harness) {
	need(t, h.FirstInFirstOut, "FirstInFirstOut")
	ps, k := h.processes(t, 7, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0], k)
	var order []int // guarded by the lock
	var wg sync.WaitGroup
	for i, p := range ps[1:] {
		wg.Go(func() {
			err := p.Do(bounded(t), k, func(context.Context, *lock.Lease) error {
				order = append(order, i)
				return nil
			})
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
			}
		})
		wait(t, "waiter", p.tap.Seen(Wait, 1))
	}
	release(t, lease)
	wg.Wait()
	if !slices.IsSorted(order) || len(order) != len(ps)-1 {
		t.Errorf("served in the order %v", order)
	}
}

// handoffSkipsStore: "A freed lease is handed to the next without a round trip".
func handoffSkipsStore(t *testing.T, h Harness) {
	const waiters = 50
	p, k := h.processes(t, 1, lock.Options{TTL: long, HandoffTime: patience})[0], key(t)
	lease := acquire(t, p, k)
	asked := p.tap.Count(Acquire)
	last := lease.Fence() // guarded by the lock
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			err := p.Do(bounded(t), k, func(_ context.Context, lease *lock.Lease) error {
				if h.Fences && lease.Fence() <= last {
					t.Errorf("fence %d after %d", lease.Fence(), last)
				}
				last = lease.Fence()
				return nil
			})
			if err != nil {
				t.Errorf("Do: %v", err)
			}
		})
	}
	inQueue(t, p, waiters)
	release(t, lease)
	wg.Wait()
	if n := p.tap.Count(Acquire) - asked; n > waiters/10 {
		t.Errorf("%d turns took %d requests", waiters, n)
	}
	if next := acquire(t, p, k); h.Fences && next.Fence() <= last {
		t.Errorf("fence %d of the next grant, after %d was handed over", next.Fence(), last)
	}
}
