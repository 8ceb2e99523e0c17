// Package memory is what a changed lock.Memory has to fail, beside locksim.
package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
)

func TestMemory(t *testing.T) {
	locktest.Run(t, func(*testing.T) locktest.Harness {
		store := lock.NewMemory()
		return locktest.Harness{
			Connect: func(testing.TB) lock.Backend { return store },
			Expires: true, Notifies: true, Fences: true,
		}
	})
}

// heldLast is a Backend that answers a request for b when the other requests have been answered.
type heldLast struct{ lock.Backend }

func (h heldLast) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	if c.Key == "b" {
		synctest.Wait()
	}
	return h.Backend.Acquire(ctx, c)
}

// "All or none": after an AcquireAll that failed, all keys but the held one are free. The held key is found last: found
// first, it ends the requests for the keys after it, so that nothing would have to be given back.
func TestAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lock.NewMemory()
		other := lock.New(store, lock.Options{})
		locker := lock.New(heldLast{store}, lock.Options{MaxWait: 200 * time.Millisecond})
		defer other.Close()
		defer locker.Close()
		if _, err := other.Acquire(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		if _, err := locker.AcquireAll(t.Context(), "a", "b", "c"); !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("got %v, want ErrTimeout", err)
		}
		for _, key := range []string{"a", "c"} {
			if _, err := other.TryAcquire(t.Context(), key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}
