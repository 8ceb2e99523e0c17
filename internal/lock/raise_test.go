package lock_test

import (
	"math"
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
)

// "A number that leaves no room for those to come is refused", and the lease is
// what it was. The highest that is not refused is followed by higher ones.
func TestLease_Raise_range(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		backend lock.Backend
		most    int64
	}{
		"redis":  {lock.NewRedis(connect(t, testserver.Redis(t))), 1<<52 - 1},
		"memory": {lock.NewMemory(), 1<<62 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locker := newLocker(t, c.backend, lock.Options{})
			lease, err := locker.Acquire(t.Context(), t.Name())
			if err != nil {
				t.Fatal(err)
			}
			first := lease.Fence()
			for _, above := range []int64{c.most + 1, 1 << 62, math.MaxInt64} {
				if err := lease.Raise(t.Context(), above); err == nil || lease.Fence() != first || lease.Context().Err() != nil {
					t.Errorf("above %d: got fence %d and %v (%v), want fence %d and an error", above, lease.Fence(), err, lease.Context().Err(), first)
				}
			}
			if err := lease.Raise(t.Context(), c.most); err != nil || lease.Fence() <= c.most {
				t.Errorf("above %d: got fence %d and %v", c.most, lease.Fence(), err)
			}
			raised := lease.Fence()
			for range 3 {
				if err := lease.Release(); err != nil {
					t.Fatal(err)
				}
				if lease, err = locker.Acquire(t.Context(), t.Name()); err != nil {
					t.Fatal(err)
				}
				if lease.Fence() <= raised {
					t.Errorf("got fence %d after %d", lease.Fence(), raised)
				}
				raised = lease.Fence()
			}
			// What is counted on from there can be renewed: to raise it by one is that, too.
			if name == "redis" {
				if err := lease.Raise(t.Context(), raised); err != nil {
					t.Errorf("renewal of fence %d: %v", raised, err)
				}
			}
			if err := lease.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}
