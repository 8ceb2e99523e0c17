package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// "The loss of a leader ends no session" and "a lease goes on if it is renewed in
// time through another server": on three servers, of which the one that leads is
// killed, or hangs, while a lease is held and others wait for it, and comes back
// later. The lease goes on, or ends by its deadline; nobody else is granted the
// key while it is trusted; fences rise; everybody has turns again.
//
// Not beside other tests: three servers and eight processes keep a machine busy.
func TestBackend_LeaderLost(t *testing.T) {
	servers := testserver.StartZooKeeperEnsemble(t)
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	for _, fault := range []struct {
		name       string
		begin, end func(*testserver.Server, testing.TB)
		hangsUp    bool // so that its clients go to another at once
	}{
		{"killed", (*testserver.Server).Kill, (*testserver.Server).Restart, true},
		{"hangs", (*testserver.Server).Pause, (*testserver.Server).Unpause, false},
	} {
		t.Run(fault.name, func(t *testing.T) {
			var markets []*market
			var leases []*lock.Lease
			for _, ttl := range []time.Duration{shortTTL, longTTL} {
				m, lease := heldMarket(t, addrs, ttl)
				markets, leases = append(markets, m), append(leases, lease)
			}
			b := connectAll(t, addrs, zklock.Options{Root: newRoot()})
			c := lock.Claim{Key: "key", Owner: "me", TTL: 10 * time.Second}
			g, err := b.Acquire(bounded(t), c)
			if err != nil || g.Held {
				t.Fatalf("Acquire: %+v, %v", g, err)
			}
			leader := testserver.ZooKeeperLeader(t, servers)
			began := time.Now()
			fault.begin(leader, t)
			var held sync.WaitGroup
			for i, m := range markets {
				held.Go(func() { m.outlive(leases[i], began) })
			}
			if fault.hangsUp {
				mustKeep(t, b, c, g)
			}
			held.Wait()
			for _, m := range markets {
				m.awaitTurns(10)
				t.Logf("TTL %v: turns again after %v", m.ttl, time.Since(began))
			}
			fault.end(leader, t)
			for _, m := range markets {
				m.awaitTurns(10)
			}
		})
	}
}

// heldMarket returns a market whose first process holds the key, while all others
// stand in line.
func heldMarket(t *testing.T, addrs []string, ttl time.Duration) (*market, *lock.Lease) {
	t.Helper()
	const processes = 4
	root := newRoot()
	m := newMarket(t, addrs, root, ttl, processes)
	t.Cleanup(m.open())
	nodes := lookAt(t, addrs[0])
	for ctx := bounded(t); ; {
		lease := acquire(t, m.lockers[0], marketKey)
		m.turn(0, lease)
		for lease.Context().Err() == nil && ctx.Err() == nil { // it may end while the others come
			if len(nodes.under(root+"/"+marketKey)) == processes {
				return m, lease
			}
			time.Sleep(10 * time.Millisecond)
		}
		if ctx.Err() != nil {
			t.Fatalf("TTL %v: for %v, not all stand in line", ttl, patience)
		}
	}
}

// longTTL is longer than it takes to elect a leader and to find another server.
const longTTL = 2 * time.Second

// outlive waits until a lease that was held when the fault began has ended, or
// gone on for two long TTLs: renewed several times, and for longer than others
// would need to be granted the key in its place.
func (m *market) outlive(lease *lock.Lease, began time.Time) {
	m.t.Helper()
	select {
	case <-lease.Context().Done():
		if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
			m.t.Errorf("TTL %v: cause %v, want ErrLost", m.ttl, cause)
		}
		m.t.Logf("TTL %v: the lease ended after %v", m.ttl, time.Since(began))
	case <-time.After(time.Until(began.Add(2 * longTTL))):
		m.t.Logf("TTL %v: the lease goes on after %v", m.ttl, time.Since(began))
	}
	if err := lease.Release(); err != nil && !errors.Is(err, lock.ErrLost) {
		m.t.Errorf("TTL %v: Release: %v", m.ttl, err)
	}
}

// mustKeep renews a lease that was granted before the fault, through whichever
// server there is.
func mustKeep(t *testing.T, b *zklock.Backend, c lock.Claim, g lock.Grant) {
	t.Helper()
	began := time.Now()
	if err := renew(t, b, c); err != nil {
		t.Fatalf("Renew: %v", err)
	}
	t.Logf("TTL %v: renewed after %v", c.TTL, time.Since(began))
	mustLive(t, g)
	if err := b.Release(bounded(t), c); err != nil {
		t.Errorf("Release: %v", err)
	}
}
