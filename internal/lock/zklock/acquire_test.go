package zklock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// Two at once ask for a key that is free, without standing in line: one gets it,
// and the other leaves nothing behind.
func TestBackend_TryAcquireLeavesNothing(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes := lookAt(t, addr)
	first := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	second := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	for i := range 50 {
		leases := make(chan *lock.Lease, 2)
		for _, l := range []*lock.Locker{first, second} {
			go func() {
				lease, err := l.TryAcquire(bounded(t), "key")
				if err != nil && (!errors.Is(err, lock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("TryAcquire: %v", err)
				}
				leases <- lease
			}()
		}
		won := 0
		for range 2 {
			if lease := wait(t, "TryAcquire", leases); lease != nil {
				won++
				if err := lease.Release(); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
		}
		if got := nodes.under(root + "/key"); len(got) != 0 {
			t.Fatalf("round %d, won by %d: got nodes %q, want none", i, won, got)
		}
	}
}

// A key's node that is removed at any time, as servers do with empty ones, is
// made again, and fences go on rising.
func TestBackend_ParentRemoved(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes := lookAt(t, addr)
	locker := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	var last int64
	for range 3 {
		lease, err := locker.Acquire(bounded(t), "key")
		if err != nil {
			t.Fatal(err)
		}
		if lease.Fence() <= last {
			t.Errorf("fence %d after %d", lease.Fence(), last)
		}
		last = lease.Fence()
		if err := nodes.Delete(root+"/key", -1); !errors.Is(err, zk.ErrNotEmpty) {
			t.Errorf("delete of a held key's node: %v, want ErrNotEmpty", err)
		}
		if err := lease.Release(); err != nil {
			t.Errorf("Release: %v", err)
		}
		nodes.clear(root)
	}
}
