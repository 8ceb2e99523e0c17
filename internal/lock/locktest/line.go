package locktest

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// processLine: "Waiters queue in the process, first in first out, newcomers
// behind them."
func processLine(t *testing.T, h Harness) {
	const waiters = 20
	p, k := h.processes(t, 1, lock.Options{TTL: long})[0], key(t)
	lease := acquire(t, p.Locker, k)
	var order []int // guarded by the lock
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			err := p.Do(bounded(t), k, func(context.Context, *lock.Lease) error {
				order = append(order, i)
				return nil
			})
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
			}
		})
		inLine(t, p, k, i+1)
	}
	release(t, lease)
	wg.Wait()
	if !slices.IsSorted(order) || len(order) != waiters {
		t.Errorf("served in the order %v", order)
	}
}

// inLine waits until n callers of the process stand in line for the key.
func inLine(t *testing.T, p process, key string, n int) {
	t.Helper()
	stand := make(chan struct{})
	go func() {
		defer close(stand)
		for ctx := bounded(t); p.Waiting(key) < n && ctx.Err() == nil; {
			runtime.Gosched()
		}
	}()
	wait(t, "waiters in line", stand)
}

// handoffSkipsStore: "A freed lease may be handed straight to the next local
// waiter without a round trip".
func handoffSkipsStore(t *testing.T, h Harness) {
	const waiters = 50
	p, k := h.processes(t, 1, lock.Options{TTL: long, HandoffTime: patience})[0], key(t)
	lease := acquire(t, p.Locker, k)
	asked := p.tap.Count(Acquire)
	var last = lease.Fence() // guarded by the lock
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
	inLine(t, p, k, waiters)
	release(t, lease)
	wg.Wait()
	if n := p.tap.Count(Acquire) - asked; n > waiters/10 {
		t.Errorf("%d turns took %d requests", waiters, n)
	}
	if next := acquire(t, p.Locker, k); h.Fences && next.Fence() <= last {
		t.Errorf("fence %d of the next grant, after %d was handed over", next.Fence(), last)
	}
}

// handoffIsBounded: "for a bounded number of hand-offs and a bounded time, so
// that other processes are not starved": one process's line never gets empty,
// and yet the other has its turn, by either bound alone.
func handoffIsBounded(t *testing.T, h Harness) {
	for name, o := range map[string]lock.Options{
		"in number": {TTL: long, MaxHandoffs: 3, HandoffTime: long},
		"in time":   {TTL: long, MaxHandoffs: 65_535, HandoffTime: 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			ps, k := h.processes(t, 2, o), key(t)
			ctx, stop := context.WithCancel(bounded(t))
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for ctx.Err() == nil {
						_ = ps[0].Do(ctx, k, func(context.Context, *lock.Lease) error {
							for ps[0].Waiting(k) == 0 && ctx.Err() == nil {
								runtime.Gosched()
							}
							return nil
						})
					}
				})
			}
			for range 5 {
				release(t, acquire(t, ps[1].Locker, k))
			}
			stop()
			wg.Wait()
		})
	}
}

// storeLine: waiters of several processes are served in the order in which they
// came.
func storeLine(t *testing.T, h Harness) {
	need(t, h.FirstInFirstOut, "FirstInFirstOut")
	const waiters = 6
	ps, k := h.processes(t, 1+waiters, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0].Locker, k)
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
	if !slices.IsSorted(order) || len(order) != waiters {
		t.Errorf("served in the order %v", order)
	}
}
