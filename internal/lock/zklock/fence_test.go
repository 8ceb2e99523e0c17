package zklock_test

import (
	"errors"
	"math"
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// "A fence is raised to what the server has counted to, no further: ErrFence".
func TestBackend_Raise(t *testing.T) {
	t.Parallel()
	b := connect(t, testserver.ZooKeeper(t), zklock.Options{Root: newRoot()})
	lease, err := newLocker(t, b, lock.Options{}).Acquire(bounded(t), "key")
	if err != nil {
		t.Fatal(err)
	}
	before := lease.Fence()
	if err := lease.Raise(bounded(t), before+65_535); err != nil || lease.Fence() <= before+65_535 {
		t.Errorf("Raise: %v, fence %d, want more than %d", err, lease.Fence(), before+65_535)
	}
	before = lease.Fence()
	if err := lease.Raise(bounded(t), before+1<<40); !errors.Is(err, zklock.ErrFence) {
		t.Errorf("Raise by far: %v, want ErrFence", err)
	}
	if lease.Fence() != before || lease.Context().Err() != nil {
		t.Errorf("fence %d, context %v; want %d and a live lease", lease.Fence(), lease.Context().Err(), before)
	}
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func TestFenceOf(t *testing.T) {
	const last = math.MaxInt64 >> 16
	for zxid, want := range map[int64]int64{1: 65_536, 2: 131_072, 1<<32 + 1: (1<<32 + 1) << 16, last: last << 16} {
		got, err := zklock.FenceOf(zxid)
		if got != want || err != nil {
			t.Errorf("zxid %d: got %d, %v; want %d", zxid, got, err, want)
		}
		if got+65_535 < got {
			t.Errorf("zxid %d: no room for hand-offs", zxid)
		}
	}
	for _, zxid := range []int64{last + 1, math.MaxInt64, 0, -1} {
		if got, err := zklock.FenceOf(zxid); !errors.Is(err, zklock.ErrFence) {
			t.Errorf("zxid %d: got %d, %v; want ErrFence", zxid, got, err)
		}
	}
}

// "Sequence numbers used up": the line empties, and its node is made anew.
func TestBackend_SequenceUsedUp(t *testing.T) {
	t.Parallel()
	b := connect(t, testserver.ZooKeeper(t), zklock.Options{Root: newRoot()})
	b.SetLastSequence(2)
	locker := newLocker(t, b, lock.Options{})
	var last int64
	refused := 0
	for range 9 {
		lease, err := locker.Acquire(bounded(t), "key")
		if errors.Is(err, zklock.ErrSequence) {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if lease.Fence() <= last {
			t.Errorf("fence %d after %d", lease.Fence(), last)
		}
		last = lease.Fence()
		if err := lease.Release(); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
	if refused != 2 {
		t.Errorf("refused %d times, want 2: the 4th and the 8th", refused)
	}
}
