package zklock_test

import (
	"context"
	"sync"
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

func TestBackend(t *testing.T) {
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		addr, root := testserver.ZooKeeper(t), newRoot()
		return locktest.Harness{
			Connect: func(t testing.TB) lock.Backend {
				return &onDemand{t: t, proxy: newProxy(t, addr), root: root}
			},
			Cut: func(b lock.Backend) { b.(*onDemand).proxy.freeze() },
			// Not Expires: a lease outlives its TTL for as long as its session is
			// heard of, also without renewals. Not Raises: zxids cannot be set.
			Notifies:        true,
			FirstInFirstOut: true,
			Fences:          true,
			Forget: func(t testing.TB) {
				t.Helper()
				lookAt(t, addr).clear(root)
			},
		}
	})
}

// onDemand is a Backend that connects when the first claim tells its TTL, so that
// the session is as short as it may be: the suite has TTLs that it waits for, and
// others of some minutes.
type onDemand struct {
	t     testing.TB
	proxy *proxy
	root  string

	once    sync.Once
	backend *zklock.Backend
}

func (d *onDemand) on(c lock.Claim) *zklock.Backend {
	d.once.Do(func() {
		d.backend = connect(d.t, d.proxy.addr, zklock.Options{Root: d.root, SessionTimeout: 3 * c.TTL})
	})
	return d.backend
}

func (d *onDemand) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	return d.on(c).Acquire(ctx, c)
}

func (d *onDemand) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	return d.on(c).Wait(ctx, c, g)
}

func (d *onDemand) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	return d.on(c).Renew(ctx, c)
}

func (d *onDemand) Release(ctx context.Context, c lock.Claim) error { return d.on(c).Release(ctx, c) }

func (d *onDemand) Close() error {
	d.once.Do(func() {}) // nothing was asked: nothing is to close
	if d.backend == nil {
		return nil
	}
	return d.backend.Close()
}
