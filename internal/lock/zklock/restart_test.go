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

// A server that crashes and comes back knows sessions and nodes again: a lease
// that has not run out meanwhile goes on, and its line with it.
func TestBackend_ServerRestarts(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t)
	o := zklock.Options{SessionTimeout: 3 * time.Minute}
	ttl := lock.Options{TTL: time.Minute}
	holder := newLocker(t, connect(t, server.Addr(), o), ttl)
	waiting := connect(t, server.Addr(), o)
	lease, err := holder.Acquire(bounded(t), "key")
	if err != nil {
		t.Fatal(err)
	}
	c := lock.Claim{Key: "key", Owner: "second", TTL: ttl.TTL, Queue: true}
	g, err := waiting.Acquire(bounded(t), c)
	if err != nil || !g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	server.Kill(t)
	server.Restart(t)
	g, err = waiting.Acquire(bounded(t), c)
	if err != nil || !g.Held {
		t.Fatalf("Acquire after the restart: %+v, %v; want held", g, err)
	}
	done := make(chan error, 1)
	go func() { done <- waiting.Wait(bounded(t), c, g) }()
	if lease.Context().Err() != nil {
		t.Errorf("the lease has ended: %v", context.Cause(lease.Context()))
	}
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
	if err := wait(t, "wake-up", done); err != nil {
		t.Errorf("Wait: %v", err)
	}
	g, err = waiting.Acquire(bounded(t), c)
	if err != nil || g.Held || g.Fence <= lease.Fence() {
		t.Errorf("Acquire: %+v, %v; want a fence above %d", g, err, lease.Fence())
	}
}

// A server that hangs ends a lease at its deadline, however open the connection
// looks, and is used again when it goes on.
func TestBackend_ServerHangs(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t)
	o := zklock.Options{SessionTimeout: shortSession}
	locker := newLocker(t, connect(t, server.Addr(), o), lock.Options{TTL: shortTTL})
	lease := acquire(t, locker, "key")
	server.Pause(t)
	wait(t, "the lease's end", lease.Context().Done())
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	server.Unpause(t)
	next := acquire(t, locker, "key")
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
	}
}
