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

// "A connection that is lost while the node is made leaves no second one": the
// node is found again by its owner.
func TestBackend_CreateAnswerLost(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	locker := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: root}), lock.Options{})
	warmUp(t, locker, "key")

	lost := proxy.loseAnswer(opCreate)
	lease, err := locker.Acquire(bounded(t), "key")
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	wait(t, "the lost answer", lost)
	if got := nodes.under(root + "/key"); len(got) != 1 {
		t.Errorf("got nodes %q, want one", got)
	}
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
	if got := nodes.under(root + "/key"); len(got) != 0 {
		t.Errorf("got nodes %q after the release, want none", got)
	}
}

// The same for a caller who is gone before the connection is back: the key is
// free for others, though the session lives on.
func TestBackend_CreateAnswerLostAndCallerGone(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	locker := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: root}), lock.Options{})
	warmUp(t, locker, "key")
	other := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})

	lost := proxy.loseAnswerAndShut(opCreate)
	ctx, cancel := context.WithCancel(bounded(t))
	failed := make(chan error, 1)
	go func() {
		_, err := locker.Acquire(ctx, "key")
		failed <- err
	}()
	wait(t, "the lost answer", lost)
	cancel()
	if err := wait(t, "the caller's end", failed); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %v, want context.Canceled", err)
	}
	if got := nodes.under(root + "/key"); len(got) != 1 {
		t.Errorf("got nodes %q, want the stray one: else this tests nothing", got)
	}
	proxy.open()
	lease, err := other.Acquire(bounded(t), "key")
	if err != nil {
		t.Fatalf("Acquire by another: %v", err)
	}
	if got := nodes.under(root + "/key"); len(got) != 1 {
		t.Errorf("got nodes %q, want the other's alone", got)
	}
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// A creation that could not be sent before the session ended is carried out in
// the next one, though nobody waits for it there.
func TestBackend_CreateSentInNextSession(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	locker := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: root}), lock.Options{})
	warmUp(t, locker, "key")

	proxy.expireAndShut(t)
	leases := make(chan *lock.Lease, 1)
	go func() {
		lease, err := locker.Acquire(bounded(t), "key")
		if err != nil {
			t.Errorf("Acquire: %v", err)
		}
		leases <- lease
	}()
	proxy.open()
	lease := wait(t, "Acquire", leases)
	if lease == nil {
		return
	}
	if got := nodes.under(root + "/key"); len(got) != 1 {
		t.Errorf("got nodes %q, want one", got)
	}
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
	if got := nodes.under(root + "/key"); len(got) != 0 {
		t.Errorf("got nodes %q after the release, want none", got)
	}
}

// A creation that nobody waits for any more is not overtaken by the release.
func TestBackend_CreateAbandoned(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	b := connect(t, proxy.addr, zklock.Options{Root: root})
	warmUp(t, lock.New(b, lock.Options{}), "key")
	proxy.freeze()
	c := lock.Claim{Key: "key", Owner: "me", TTL: time.Second}
	soon, cancel := context.WithTimeout(bounded(t), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Acquire(soon, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire: %v, want DeadlineExceeded", err)
	}
	if err := b.Release(soon, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Release: %v, want DeadlineExceeded", err)
	}
	proxy.thaw()
	// By now the key may have been granted, or not.
	if err := b.Release(bounded(t), c); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want nil or ErrLost", err)
	}
	if got := nodes.under(root + "/key"); len(got) != 0 {
		t.Errorf("got nodes %q, want none", got)
	}
}

// warmUp makes the session and the key's node: what fails later is the creation
// of an owner's.
func warmUp(t testing.TB, l *lock.Locker, key string) {
	t.Helper()
	lease, err := l.Acquire(bounded(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
}
