package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// "Release goes on by itself": also when no attempt of the Locker reaches the
// server, the session lives, and the Locker has long given up.
func TestBackend_ReleaseGoesOn(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	b := connect(t, proxy.addr, zklock.Options{Root: root})
	c := lock.Claim{Key: "key", Owner: "me", TTL: time.Second}
	if g, err := b.Acquire(bounded(t), c); err != nil || g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	proxy.shut()
	gone, cancel := context.WithCancel(bounded(t))
	cancel()
	if err := b.Release(gone, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Release: %v, want context.Canceled", err)
	}
	mustEndWithContext(t, "a second Release", func(ctx context.Context) error { return b.Release(ctx, c) })
	if _, err := b.Renew(bounded(t), c); !errors.Is(err, lock.ErrLost) { // at once, however long that takes
		t.Errorf("Renew after Release: %v, want ErrLost", err)
	}
	nodes.awaitCount(root+"/key", 1)
	proxy.open()
	nodes.awaitCount(root+"/key", 0)
}

// The answer to a deletion that got lost is no loss of the lease.
func TestBackend_ReleaseAnswerLost(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, testserver.ZooKeeper(t))
	locker := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: newRoot()}), lock.Options{})
	lease, err := locker.Acquire(bounded(t), "key")
	if err != nil {
		t.Fatal(err)
	}
	lost := proxy.loseAnswer(opDelete)
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
	wait(t, "the lost answer", lost)
}

// One who gives up in the line takes its node with it.
func TestBackend_CancelledInLine(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes := lookAt(t, addr)
	holder := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	waiter := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	lease, err := holder.Acquire(bounded(t), "key")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bounded(t))
	failed := make(chan error, 1)
	go func() {
		_, err := waiter.Acquire(ctx, "key")
		failed <- err
	}()
	nodes.awaitCount(root+"/key", 2)
	cancel()
	if err := wait(t, "the caller's end", failed); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %v, want context.Canceled", err)
	}
	nodes.awaitCount(root+"/key", 1)
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}
