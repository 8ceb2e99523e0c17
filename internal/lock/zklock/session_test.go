package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// The least that a session has to be for the TTL.
const (
	shortTTL     = 300 * time.Millisecond
	shortSession = 3 * shortTTL
)

// A session that has expired ends its leases, and the next session acquires again.
func TestBackend_SessionExpires(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	locker := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: root}), lock.Options{})
	lease, err := locker.Acquire(bounded(t), "key")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	proxy.expire(t)
	wait(t, "the lease's end", lease.Context().Done())
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	t.Logf("the lease ended %v after its session", time.Since(began))
	next := acquire(t, locker, "key")
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
	}
	if err := next.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// Renew and Release know it, whichever comes first.
func TestBackend_SessionExpiresUnderClaim(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	b := connect(t, proxy.addr, zklock.Options{Root: root})
	c := lock.Claim{Key: "key", Owner: "me", TTL: time.Second}
	for range 2 {
		if g, err := b.Acquire(bounded(t), c); err != nil || g.Held {
			t.Fatalf("Acquire: %+v, %v", g, err)
		}
		proxy.expire(t)
		if err := renew(t, b, c); !errors.Is(err, lock.ErrLost) {
			t.Fatalf("Renew after the session's end: %v, want ErrLost", err)
		}
	}
	if err := b.Release(bounded(t), c); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
}

// A waiter whose session ends stands in line again in the next one.
func TestBackend_SessionExpiresInLine(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	holder := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	waiter := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: root}), lock.Options{})
	lease, err := holder.Acquire(bounded(t), "key")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- waiter.Do(bounded(t), "key", func(context.Context, *lock.Lease) error { return nil })
	}()
	nodes.awaitCount(root+"/key", 2)
	proxy.expire(t)
	nodes.awaitCount(root+"/key", 2)
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
	if err := wait(t, "the waiter", done); err != nil {
		t.Errorf("Do: %v", err)
	}
}

// "A holder that is cut off silently stops trusting its lease before anybody
// else is granted the key", however often.
func TestBackend_Partition(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	o := lock.Options{TTL: shortTTL}
	other := newLocker(t, connect(t, addr, zklock.Options{Root: root, SessionTimeout: shortSession}), o)
	for range 10 {
		proxy := newProxy(t, addr)
		b := connect(t, proxy.addr, zklock.Options{Root: root, SessionTimeout: shortSession})
		locker := newLocker(t, b, o)
		lease := acquire(t, locker, "key")
		began := time.Now()
		proxy.freeze()
		next := acquire(t, other, "key")
		if lease.Context().Err() == nil {
			t.Error("two live holders")
		}
		if next.Fence() <= lease.Fence() {
			t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
		}
		t.Logf("granted to the other after %v", time.Since(began).Round(time.Millisecond))
		proxy.thaw()
		if err := lease.Release(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release of the lost lease: %v, want ErrLost", err)
		}
		if err := next.Release(); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
}

// A connection that is lost and comes back costs nobody a lease.
func TestBackend_Reconnects(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	b := connect(t, proxy.addr, zklock.Options{Root: root})
	c := lock.Claim{Key: "key", Owner: "me", TTL: 10 * time.Second}
	g, err := b.Acquire(bounded(t), c)
	if err != nil || g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	for range 3 {
		proxy.cut()
		if err := renew(t, b, c); err != nil {
			t.Fatalf("Renew: %v", err)
		}
	}
	if err := b.Release(bounded(t), c); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// "ErrTTL: the Locker's TTL is more than a third of the timeout that the server
// granted": what counts is what it granted, not what was asked for.
func TestBackend_TTLTooLong(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	b := connect(t, addr, zklock.Options{Root: root, SessionTimeout: 3 * time.Second})
	_, err := newLocker(t, b, lock.Options{TTL: 1001 * time.Millisecond}).Acquire(bounded(t), "key")
	if !errors.Is(err, zklock.ErrTTL) || !errors.Is(err, lock.ErrNotAcquired) {
		t.Errorf("Acquire: %v, want ErrTTL and ErrNotAcquired", err)
	}
	for _, says := range []string{"1.001s", "3s"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("error %q does not say %s", err, says)
		}
	}
	day := connect(t, addr, zklock.Options{Root: root, SessionTimeout: 24 * time.Hour}) // granted: one hour
	c := lock.Claim{Key: "key", Owner: "me", TTL: 21 * time.Minute}
	if _, err := day.Acquire(bounded(t), c); !errors.Is(err, zklock.ErrTTL) {
		t.Errorf("Acquire: %v, want ErrTTL", err)
	}
	c.TTL = 20 * time.Minute
	if g, err := day.Acquire(bounded(t), c); err != nil || g.Held {
		t.Errorf("Acquire: %+v, %v", g, err)
	}
	c.TTL = 21 * time.Minute
	if _, err := day.Renew(bounded(t), c); !errors.Is(err, zklock.ErrTTL) {
		t.Errorf("Renew: %v, want ErrTTL", err)
	}
}
