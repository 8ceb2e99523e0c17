package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
)

// record is an Observer that remembers what it was told.
type record struct {
	mu     sync.Mutex
	counts map[string]int
	told   chan string // every event, for who waits for one
}

func newRecord() *record {
	return &record{counts: make(map[string]int), told: make(chan string, 1000)}
}

func (r *record) note(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[event]++
	r.told <- event
}

func (r *record) count(event string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[event]
}

// until waits for an event.
func (r *record) until(t *testing.T, event string) {
	t.Helper()
	if err := r.wait(event); err != nil {
		t.Fatal(err)
	}
}

// wait is until, for other goroutines than the test's.
func (r *record) wait(event string) error {
	timeout := time.After(20 * time.Second)
	for {
		select {
		case e := <-r.told:
			if e == event {
				return nil
			}
		case <-timeout:
			r.mu.Lock()
			defer r.mu.Unlock()
			return fmt.Errorf("not told of %q; told so far: %v", event, r.counts)
		}
	}
}

func (r *record) Waited(_ string, _ time.Duration, err error) {
	r.note(fmt.Sprint("waited, acquired ", err == nil))
}
func (r *record) Contended(string)               { r.note("contended") }
func (r *record) Held(_ string, _ time.Duration) { r.note("held") }
func (r *record) HandedOver(string)              { r.note("handed over") }
func (r *record) Lost(_ string, cause error) {
	r.note(fmt.Sprint("lost ", errors.Is(cause, lock.ErrLost)))
}
func (r *record) Renewed(_ string, _ time.Duration, err error) {
	r.note(fmt.Sprint("renewed ", err == nil))
}

// The Observer is told of each thing that happens to a lease.
func TestObserver(t *testing.T) { synctest.Test(t, testObserver) }

func testObserver(t *testing.T) {
	told := newRecord()
	store := lock.NewMemory()
	tap := locktest.NewTap(store)
	locker := newLocker(t, tap, lock.Options{TTL: time.Second, HandoffTime: time.Minute, Observer: told})
	other := newLocker(t, store, lock.Options{})

	held, err := other.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- locker.Do(t.Context(), "key", func(_ context.Context, lease *lock.Lease) error {
			next := make(chan error, 1)
			go func() {
				next <- locker.Do(context.Background(), "key", func(context.Context, *lock.Lease) error { return nil })
			}()
			if err := told.wait("renewed true"); err != nil {
				return err
			}
			synctest.Wait() // until it stands in line
			if err := lease.Release(); err != nil {
				return err
			}
			return <-next
		})
	}()
	told.until(t, "contended")
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for event, want := range map[string]int{
		"waited, acquired true": 2, "contended": 1, "held": 2, "handed over": 1,
	} {
		if n := told.count(event); n != want {
			t.Errorf("%s: told %d times, want %d", event, n, want)
		}
	}

	if _, err := locker.Acquire(t.Context(), "lost"); err != nil {
		t.Fatal(err)
	}
	tap.Cut()
	told.until(t, "renewed false")
	told.until(t, "lost true")
	if _, err := locker.TryAcquire(t.Context(), "lost"); err == nil {
		t.Fatal("acquired through a cut tap")
	}
	told.until(t, "waited, acquired false")
}
