package zklock_test

import (
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// "A release wakes one": with 100 owners in line, each release is one event from
// the server, after which one owner looks at the line.
func TestBackend_NoHerd(t *testing.T) {
	t.Parallel()
	const waiters = 100
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	waiting := connect(t, proxy.addr, zklock.Options{Root: root})
	holder := connect(t, addr, zklock.Options{Root: root})
	claim := func(i int) lock.Claim {
		return lock.Claim{Key: "key", Owner: fmt.Sprint("owner ", i), TTL: 10 * time.Second, Queue: true}
	}
	if g, err := holder.Acquire(bounded(t), claim(0)); err != nil || g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	woken := make(chan int, waiters)
	never := lock.Grant{Held: true, Retry: time.Hour} // no safety net in this test
	for i := 1; i <= waiters; i++ {
		if g, err := waiting.Acquire(bounded(t), claim(i)); err != nil || !g.Held {
			t.Fatalf("Acquire by %d: %+v, %v", i, g, err)
		}
		before := proxy.count(opChildren)
		go func() {
			if err := waiting.Wait(bounded(t), claim(i), never); err != nil {
				t.Errorf("Wait by %d: %v", i, err)
			}
			woken <- i
		}()
		wait(t, "watch", proxy.counted(opChildren, before+1))
	}
	lines := proxy.count(opChildren)
	if err := holder.Release(bounded(t), claim(0)); err != nil {
		t.Fatalf("Release: %v", err)
	}
	for i := 1; i <= waiters; i++ {
		if next := wait(t, "wake-up", woken); next != i {
			t.Fatalf("woke %d, want %d", next, i)
		}
		if g, err := waiting.Acquire(bounded(t), claim(i)); err != nil || g.Held {
			t.Fatalf("Acquire by %d: %+v, %v", i, g, err)
		}
		if got := proxy.eventCount(); got != i {
			t.Fatalf("got %d events after %d releases", got, i)
		}
		if got := proxy.count(opChildren) - lines; got != i {
			t.Fatalf("the line was read %d times after %d releases", got, i)
		}
		if err := waiting.Release(bounded(t), claim(i)); err != nil {
			t.Fatalf("Release by %d: %v", i, err)
		}
	}
}

// A holder that renews wakes nobody.
func TestBackend_RenewalWakesNobody(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	holder := connect(t, addr, zklock.Options{Root: root})
	waiting := connect(t, proxy.addr, zklock.Options{Root: root})
	first := lock.Claim{Key: "key", Owner: "first", TTL: 10 * time.Second}
	second := lock.Claim{Key: "key", Owner: "second", TTL: 10 * time.Second, Queue: true}
	if g, err := holder.Acquire(bounded(t), first); err != nil || g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	g, err := waiting.Acquire(bounded(t), second)
	if err != nil || !g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	done := make(chan error, 1)
	go func() { done <- waiting.Wait(bounded(t), second, g) }()
	wait(t, "watch", proxy.counted(opChildren, 2))
	for range 20 {
		if _, err := holder.Renew(bounded(t), first); err != nil {
			t.Fatalf("Renew: %v", err)
		}
	}
	if err := holder.Release(bounded(t), first); err != nil {
		t.Fatalf("Release: %v", err)
	}
	if err := wait(t, "wake-up", done); err != nil {
		t.Errorf("Wait: %v", err)
	}
	if got := proxy.eventCount(); got != 1 {
		t.Errorf("got %d events, want 1", got)
	}
}
