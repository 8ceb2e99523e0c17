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
)

// Who could not wait until Redis confirmed the subscription, and so stands in no
// line, asks again when it does.
func TestRedis_LateSubscription(t *testing.T) {
	t.Parallel()
	server := startMiniredis(t)
	o := lock.Options{TTL: time.Hour, MaxWait: 2 * time.Hour}
	lease, err := newLocker(t, lock.NewRedis(connect(t, server.Addr())), o).Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := waiter.Do(t.Context(), "other", nothing); err != nil { // has a connection to ask on
		t.Fatal(err)
	}
	late.Store(true)
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), "k", nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))
	close(goOn)
	await(t, "waiter that asks again", tap.Seen(locktest.Wait, 2))
	mustPass(t, lease, served)
}
