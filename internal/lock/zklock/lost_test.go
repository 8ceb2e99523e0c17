package zklock_test

import (
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// "Grant.Lost of all its leases is closed then": with the session goes each lease
// that was granted in it, unasked, and none that is granted in the next one.
func TestBackend_LostWithSession(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	b := connect(t, proxy.addr, zklock.Options{Root: root})
	first, second := mustGrant(t, b, "first"), mustGrant(t, b, "second")
	proxy.expire(t)
	wait(t, "loss of the first", first.Lost)
	wait(t, "loss of the second", second.Lost)

	next := mustGrant(t, b, "first")
	mustLive(t, next)
	proxy.expire(t)
	wait(t, "loss of the next", next.Lost)
}

// "A connection that is lost does not end a lease": Lost stays open while the
// session goes on over another connection, however often.
func TestBackend_NotLostWithConnection(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, testserver.ZooKeeper(t))
	b := connect(t, proxy.addr, zklock.Options{Root: newRoot()})
	g := mustGrant(t, b, "key")
	c := lock.Claim{Key: "key", Owner: "me", TTL: time.Second}
	for range 3 {
		proxy.cut()
		if err := renew(t, b, c); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		mustLive(t, g)
	}
	if err := b.Release(bounded(t), c); err != nil {
		t.Errorf("Release: %v", err)
	}
	mustLive(t, g) // released, which is no loss
}

// A holder that is cut off cannot be told, not even after somebody else was
// granted the key: its lease ends by its own deadline. It is told once it is back.
func TestBackend_LostAfterPartition(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	cutOff := connect(t, proxy.addr, zklock.Options{Root: root, SessionTimeout: shortSession})
	g, err := cutOff.Acquire(bounded(t), lock.Claim{Key: "key", Owner: "me", TTL: shortTTL})
	if err != nil || g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	proxy.freeze()
	other := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	warmUp(t, other, "key")
	mustLive(t, g)
	proxy.thaw()
	wait(t, "loss", g.Lost)
}

// One who waits has nothing to lose, and one who closes has lost all.
func TestBackend_LostWithClose(t *testing.T) {
	t.Parallel()
	b := connect(t, testserver.ZooKeeper(t), zklock.Options{Root: newRoot()})
	g := mustGrant(t, b, "key")
	held, err := b.Acquire(bounded(t), lock.Claim{Key: "key", Owner: "second", TTL: time.Second, Queue: true})
	if err != nil || !held.Held || held.Lost != nil {
		t.Errorf("Acquire in line: %+v, %v; want held, and no Lost", held, err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wait(t, "loss", g.Lost)
}

// mustGrant acquires the key for a second, in the name of me.
func mustGrant(t *testing.T, b *zklock.Backend, key string) lock.Grant {
	t.Helper()
	g, err := b.Acquire(bounded(t), lock.Claim{Key: key, Owner: "me", TTL: time.Second})
	if err != nil || g.Held {
		t.Fatalf("Acquire %q: %+v, %v", key, g, err)
	}
	return g
}

func mustLive(t *testing.T, g lock.Grant) {
	t.Helper()
	if g.Lost == nil {
		t.Fatal("Lost is nil")
	}
	select {
	case <-g.Lost:
		t.Error("Lost is closed")
	default:
	}
}
