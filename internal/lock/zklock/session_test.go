package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/testserver"
)

// A waiter whose session ends stands in line again in the next one.
func TestBackend_SessionExpiresInLine(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes, proxy := lookAt(t, addr), newProxy(t, addr)
	holder := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	waiter := newLocker(t, connect(t, proxy.addr, zklock.Options{Root: root}), lock.Options{})
	lease := acquire(t, holder, "key")
	done := make(chan error, 1)
	go func() {
		done <- waiter.Do(bounded(t), "key", func(context.Context, *lock.Lease) error { return nil })
	}()
	nodes.awaitCount(root+"/key", 2)
	proxy.expire(t)
	nodes.awaitCount(root+"/key", 2)
	mustRelease(t, lease)
	if err := wait(t, "the waiter", done); err != nil {
		t.Errorf("Do: %v", err)
	}
}

// "ErrTTL means that the Locker's TTL is more than a third of the timeout that the server granted": what counts is what
// it granted, not what was asked for.
func TestBackend_TTLTooLong(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	b := connect(t, addr, zklock.Options{Root: root, SessionTimeout: 30 * time.Minute})
	_, err := newLocker(t, b, lock.Options{TTL: 10*time.Minute + time.Millisecond}).Acquire(bounded(t), "key")
	if !errors.Is(err, zklock.ErrTTL) || !errors.Is(err, lock.ErrNotAcquired) {
		t.Errorf("Acquire: %v, want ErrTTL and ErrNotAcquired", err)
	}
	for _, says := range []string{"10m0.001s", "30m0s"} {
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
	ask(t, day, c, false)
	c.TTL = 21 * time.Minute
	if _, err := day.Renew(bounded(t), c); !errors.Is(err, zklock.ErrTTL) {
		t.Errorf("Renew: %v, want ErrTTL", err)
	}
}

// "Grant.Lost of all leases of a session is closed when a server reports that it has expired": with the session goes
// each lease that was granted in it, unasked, and none that is granted in the next one.
func TestBackend_LostWithSession(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	proxy := newProxy(t, addr)
	b := connect(t, proxy.addr, zklock.Options{Root: root})
	first, second := mustGrant(t, b, "first"), mustGrant(t, b, "second")
	proxy.expire(t)
	wait(t, "loss of the first", first.Lost)
	wait(t, "loss of the second", second.Lost)
	if err := renew(t, b, lock.Claim{Key: "first", Owner: "me", TTL: time.Second}); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew after the session's end: %v, want ErrLost", err)
	}
	if err := b.Release(bounded(t), lock.Claim{Key: "second", Owner: "me"}); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}

	next := mustGrant(t, b, "first")
	mustLive(t, next)
	proxy.expire(t)
	wait(t, "loss of the next", next.Lost)
}

// "A connection that is lost does not end a lease": Lost stays open while the session goes on over another connection,
// however often.
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

// "Only clients with the same credentials can then see, take and delete the nodes that the Backend creates", and "the
// credentials are sent again on each new connection", and in the next session.
func TestBackend_Auth(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, testserver.ZooKeeper(t))
	root := newPrivateRoot()
	ours := zklock.Options{Root: root, AuthScheme: "digest", AuthCredentials: "shop:secret"}
	holder, friend := connect(t, proxy.addr, ours), connect(t, proxy.server, ours)
	var node string
	ours.Trace = func(command, path, answer string) {
		if command == "create" {
			node = path[:strings.LastIndex(path, "/")+1] + answer
		}
	}
	mustGrant(t, connect(t, proxy.server, ours), "seen")
	me := lock.Claim{Key: "key", Owner: "me", TTL: time.Second}
	other := lock.Claim{Key: "key", Owner: "other", TTL: time.Second}
	for range 2 {
		mustGrant(t, holder, "key")
		proxy.cut()
		if err := renew(t, holder, me); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		ask(t, friend, other, true)
		for _, credentials := range []string{"", "shop:guess"} {
			theirs := zklock.Options{Root: root, AuthCredentials: credentials}
			if credentials != "" {
				theirs.AuthScheme = "digest"
			}
			stranger := connect(t, proxy.server, theirs)
			if g, err := stranger.Acquire(bounded(t), other); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("credentials %q: Acquire: %+v, %v; want ErrNoAuth", credentials, g, err)
			}
			if err := stranger.Evict(bounded(t), "key", "me"); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("credentials %q: Evict: %v, want ErrNoAuth", credentials, err)
			}
		}
		if err := lookAt(t, proxy.server).Delete(node, -1); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("delete %s: %v, want ErrNoAuth", node, err)
		}
		proxy.expire(t)
	}
	unknown := connect(t, proxy.server, zklock.Options{Root: root, AuthScheme: "unknown"})
	if _, err := unknown.Acquire(bounded(t), other); !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(err.Error(), `"unknown"`) {
		t.Errorf("Acquire by an unknown scheme: %v, want ErrAuthFailed", err)
	}
}

// mustGrant acquires the key for a second, in the name of me.
func mustGrant(t *testing.T, b *zklock.Backend, key string) lock.Grant {
	t.Helper()
	return ask(t, b, lock.Claim{Key: key, Owner: "me", TTL: time.Second}, false)
}

// ask fails the test unless the key is granted, or held by another.
func ask(t *testing.T, b *zklock.Backend, c lock.Claim, held bool) lock.Grant {
	t.Helper()
	g, err := b.Acquire(bounded(t), c)
	if err != nil || g.Held != held {
		t.Fatalf("Acquire %q by %q: %+v, %v; want held by another: %t", c.Key, c.Owner, g, err, held)
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

// A connection is lost again and again while an owner waits, whose watch the next server has to be told, and while many
// other owners renew: the server answers some of them before it knows of the watch. The race detector is the judge, and
// no holder loses its lease.
func TestBackend_ReconnectsWithWatches(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]zklock.Options{
		"everybody": {Root: newRoot()},
		"digest":    {Root: newPrivateRoot(), AuthScheme: "digest", AuthCredentials: "shop:secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reconnectWithWatches(t, testserver.ZooKeeper(t), o)
		})
	}
}

func reconnectWithWatches(t *testing.T, addr string, o zklock.Options) {
	holder := connect(t, addr, o)
	mustGrant(t, holder, "key")
	var link link
	watching := make(chan struct{})
	watches := sync.OnceFunc(func() { close(watching) })
	o.Dial = link.dial
	o.Trace = func(command, _, _ string) {
		if command == "watch" {
			watches()
		}
	}
	b := connect(t, addr, o)
	second := lock.Claim{Key: "key", Owner: "second", TTL: time.Second, Queue: true}
	g := ask(t, b, second, true)
	g.Retry = time.Hour // no safety net in this test
	woken := make(chan error, 1)
	go func() { woken <- b.Wait(t.Context(), second, g) }()
	wait(t, "watch", watching)

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
