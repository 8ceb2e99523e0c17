package history_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest/history"
)

// Several Lockers take turns in real time and write their leases down.
func TestHistory_OfLockers(t *testing.T) {
	t.Parallel()
	const processes, goroutines, turns = 4, 4, 10
	h, store := new(history.History), lock.NewMemory()
	var wg sync.WaitGroup
	for p := range processes {
		locker := lock.New(store, lock.Options{})
		t.Cleanup(func() { _ = locker.Close() })
		for g := range goroutines {
			wg.Go(func() {
				for range turns {
					asked := time.Now()
					err := locker.Do(t.Context(), "key", func(_ context.Context, lease *lock.Lease) error {
						// Do releases after this: the interval is the inner part of the lease's.
						begin := time.Now()
						h.Add(history.Lease{
							Key: "key", Holder: fmt.Sprintf("p%d.%d", p, g), Fence: lease.Fence(),
							Since: asked, Begin: begin, End: time.Now(),
						})
						return nil
					})
					if err != nil {
						t.Errorf("Do: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	if got, want := len(h.Leases()), processes*goroutines*turns; got != want {
		t.Errorf("%d leases, want %d", got, want)
	}
	for _, broken := range h.Check() {
		t.Error(broken)
	}
}
