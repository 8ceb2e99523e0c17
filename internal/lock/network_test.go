package lock_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/testserver"
)

// "A lost message [...] delays a waiter by a tenth of the TTL or so; it never hangs": by less where the subscription's
// connection died in silence, since it is pinged, opened again, and wakes the waiters.
func TestRedis_SilentSubscription(t *testing.T) {
	t.Parallel()
	server := startMiniredis(t)
	network := startNetwork(t, server.Addr())
	o := lock.Options{TTL: time.Hour, MaxWait: 2 * time.Hour}
	holder := newLocker(t, lock.NewRedis(connect(t, server.Addr())), o)
	tap := locktest.NewTap(lock.NewRedis(connect(t, network.addr)))
	waiter := newLocker(t, tap, o)
	lease := mustAcquire(t, holder, "k")
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), "k", nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))
	network.die()
	await(t, "waiter that asks again", tap.Seen(locktest.Wait, 2))
	mustPass(t, lease, served)
}

// mustPass releases a lease, whose key the waiter has to get then.
func mustPass(t *testing.T, lease *lock.Lease, served <-chan error) {
	t.Helper()
	mustRelease(t, lease)
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the waiter is not woken by the release")
	}
}

// "A driver repeats a request whose answer was lost": the answer to a release is swallowed with its connection, and the
// lease was not lost for that.
func TestRedis_ReleaseAnswerLost(t *testing.T) {
	server := startMiniredis(t)
	network := startNetwork(t, server.Addr())
	locker := newLocker(t, lock.NewRedis(connect(t, network.addr)), lock.Options{})
	if err := locker.Do(t.Context(), "key", nothing); err != nil { // now the server knows the scripts
		t.Fatal(err)
	}
	err := locker.Do(t.Context(), "key", func(context.Context, *lock.Lease) error {
		network.loseNextAnswer()
		return nil
	})
	if err != nil {
		t.Errorf("Do: %v, want nil", err)
	}
	lease, err := newLocker(t, lock.NewRedis(connect(t, server.Addr())), lock.Options{}).TryAcquire(t.Context(), "key")
	if err != nil {
		t.Fatalf("the key was not released: %v", err)
	}
	mustRelease(t, lease)
}

// network is a way to a server that can fall silent without breaking any connection, or lose an answer together with
// its connection.
type network struct {
	addr string
	lose atomic.Bool  // the next answer
	dead atomic.Int64 // so often have all connections died
}

func startNetwork(t *testing.T, server string) *network {
	t.Helper()
	n := &network{}
	n.addr = testserver.Relay(t, server, func(client, server net.Conn) {
		testserver.BothWays(client, server,
			func() { n.pass(server, client, nil) },
			func() { n.pass(client, server, &n.lose) })
	})
	return n
}

// pass copies bytes, and breaks the connection instead when it is to lose them.
func (n *network) pass(to, from net.Conn, lose *atomic.Bool) {
	buffer := make([]byte, 4096)
	dead := n.dead.Load()
	for {
		count, err := from.Read(buffer)
		if err == nil && n.dead.Load() != dead {
			continue // into the void
		}
		if lose != nil && lose.CompareAndSwap(true, false) {
			return
		}
		if _, failed := to.Write(buffer[:count]); failed != nil || err != nil {
			return
		}
	}
}

// die makes the connections of now carry nothing any more, without a sign.
func (n *network) die() { n.dead.Add(1) }

func (n *network) loseNextAnswer() { n.lose.Store(true) }

// Who could not wait until Redis confirmed the subscription, and so stands in no line, asks again when it does.
func TestRedis_LateSubscription(t *testing.T) {
	t.Parallel()
	server := startMiniredis(t)
	o := lock.Options{TTL: time.Hour, MaxWait: 2 * time.Hour}
	lease := mustAcquire(t, newLocker(t, lock.NewRedis(connect(t, server.Addr())), o), "k")
	var late atomic.Bool // connections are, until go on
	goOn := make(chan struct{})
	client := closing(t, redis.NewClient(&redis.Options{
		Addr: server.Addr(), ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if late.Load() {
				select {
				case <-goOn:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}))
	tap := locktest.NewTap(lock.NewRedis(client))
	waiter := newLocker(t, tap, o)
	other, err := waiter.TryAcquire(t.Context(), "other") // has a connection to ask on, and no subscription
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, other)
	late.Store(true)
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), "k", nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))
	close(goOn)
	await(t, "waiter that asks again", tap.Seen(locktest.Wait, 2))
	mustPass(t, lease, served)
}
