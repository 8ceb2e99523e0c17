package lock_test

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
)

// record counts the calls of an Observer.
type record struct {
	mu     sync.Mutex
	counts map[string]int
}

func (r *record) note(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[event]++
}

func (r *record) observer() lock.Observer {
	return lock.Observer{
		Waited:    func(_ string, _ time.Duration, err error) { r.note(fmt.Sprint("waited, acquired ", err == nil)) },
		Contended: func(string) { r.note("contended") },
		Held:      func(string, time.Duration) { r.note("held") },
		Renewed:   func(_ string, _ time.Duration, err error) { r.note(fmt.Sprint("renewed ", err == nil)) },
		Lost:      func(_ string, cause error) { r.note(fmt.Sprint("lost ", errors.Is(cause, lock.ErrLost))) },
	}
}

// The Observer is told of each thing that happens to a lease.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &record{counts: make(map[string]int)}
		tap := locktest.NewTap(lock.NewMemory())
		locker := newLocker(t, tap, lock.Options{TTL: time.Second, HandoffTime: time.Minute, Observer: told.observer()})
		other := newLocker(t, tap, lock.Options{})

		held := mustAcquire(t, other, "key")
		leases := make(chan *lock.Lease, 2)
		for range 2 {
			go func() { leases <- mustAcquire(t, locker, "key") }()
			synctest.Wait()
		}
		mustRelease(t, held)
		first := <-leases
		time.Sleep(500 * time.Millisecond) // one renewal
		mustRelease(t, first)
		mustRelease(t, <-leases)

		mustAcquire(t, locker, "lost")
		tap.Cut()
		time.Sleep(time.Minute)
		if _, err := locker.TryAcquire(t.Context(), "lost"); err == nil {
			t.Fatal("acquired through a cut tap")
		}
		told.mu.Lock()
		defer told.mu.Unlock()
		if told.counts["renewed false"] == 0 {
			t.Error("not told of a renewal that failed")
		}
		delete(told.counts, "renewed false")
		want := map[string]int{
			"waited, acquired true": 3, "waited, acquired false": 1, "contended": 1,
			"held": 2, "renewed true": 1, "lost true": 1,
		}
		if !maps.Equal(told.counts, want) {
			t.Errorf("told %v, want %v", told.counts, want)
		}
	})
}
