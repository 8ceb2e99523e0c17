package zklock_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// A connection is lost again and again while an owner waits, whose watch the next
// server has to be told, and while so many others renew that the first answers
// come before it was told. The race detector is the judge; and nobody loses
// anything.
func TestBackend_ReconnectsWithWatches(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	holder := connect(t, addr, zklock.Options{Root: root})
	mustGrant(t, holder, "key")
	var link link
	b := connect(t, addr, zklock.Options{Root: root, Dial: link.dial})
	second := lock.Claim{Key: "key", Owner: "second", TTL: time.Second, Queue: true}
	g, err := b.Acquire(bounded(t), second)
	if err != nil || !g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	g.Retry = time.Hour // no safety net in this test
	woken := make(chan error, 1)
	go func() { woken <- b.Wait(t.Context(), second, g) }()

	const keys = 40 // more than the library takes before it has a connection
	for i := range keys {
		mustGrant(t, b, fmt.Sprint(i))
	}
	for range 50 {
		link.cut()
		var renewed sync.WaitGroup
		for i := range keys {
			renewed.Go(func() {
				if err := renew(t, b, lock.Claim{Key: fmt.Sprint(i), Owner: "me", TTL: time.Second}); err != nil {
					t.Errorf("Renew %d: %v", i, err)
				}
			})
		}
		renewed.Wait()
	}
	select {
	case err := <-woken:
		t.Fatalf("Wait: %v before the release", err)
	default:
	}
	if err := holder.Release(bounded(t), lock.Claim{Key: "key", Owner: "me", TTL: time.Second}); err != nil {
		t.Errorf("Release: %v", err)
	}
	if err := wait(t, "wake-up", woken); err != nil {
		t.Errorf("Wait: %v", err)
	}
}

// link cuts a connection without a proxy, whose way would be longer.
type link struct {
	mu   sync.Mutex
	conn net.Conn
}

func (l *link) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	return conn, err
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}
