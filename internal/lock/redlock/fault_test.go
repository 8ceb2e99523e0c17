package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/testserver"
)

const (
	long  = 10 * patience          // a TTL that no test waits for
	brief = 700 * time.Millisecond // a NodeTimeout that tests wait for
)

// "If a minority of nodes is down, hanging or empty, the other nodes acquire, renew and release keys as usual." In the
// case of stuck nodes, the NodeTimeout is longer than the test: no request waits for a node that does not answer.
func TestBackend_MinorityFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, s []*miniredis.Miniredis, nodes []string){
		"down": func(_ *testing.T, s []*miniredis.Miniredis, _ []string) { s[0].Close(); s[3].Close() },
		"deaf": func(t *testing.T, _ []*miniredis.Miniredis, nodes []string) {
			nodes[0], nodes[3] = listenDeaf(t), listenDeaf(t)
		},
		"stuck": nil, // the client does not give up
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t)
			nodes := addrs(servers)
			if fail != nil {
				fail(t, servers, nodes)
			}
			timeout := brief
			if fail == nil {
				timeout = patience
			}
			b, gates := newBackend(t, nodes, redlock.Options{NodeTimeout: timeout})
			if fail == nil {
				gates[0].hold()
				gates[3].hold()
			}
			mine := lock.Claim{Key: "key", Owner: "me", TTL: long}
			other := lock.Claim{Key: "key", Owner: "other", TTL: long}
			mustGrant(t, b, mine)
			mustGrant(t, b, mine)
			if g, err := b.Acquire(bounded(t), other); err != nil || !g.Held {
				t.Errorf("Acquire by another: %+v, %v; want held", g, err)
			}
			if _, err := b.Renew(bounded(t), mine); err != nil {
				t.Errorf("Renew: %v", err)
			}
			if _, err := b.Renew(bounded(t), other); !errors.Is(err, lock.ErrLost) {
				t.Errorf("Renew by another: %v, want ErrLost", err)
			}
			if err := b.Release(bounded(t), mine); err != nil {
				t.Errorf("Release: %v", err)
			}
			if err := b.Release(bounded(t), mine); !errors.Is(err, lock.ErrLost) {
				t.Errorf("second Release: %v, want ErrLost", err)
			}
			mustGrant(t, b, other)
			if err := b.Release(bounded(t), other); err != nil {
				t.Errorf("Release by the other: %v", err)
			}
			for _, g := range gates {
				g.open()
			}
			if fail != nil {
				awaitEmpty(t, servers[1], servers[2], servers[4])
			}
			mustBeEmpty(t, b, servers[1], servers[2], servers[4])
			if fail == nil {
				mustBeEmpty(t, b, servers[0], servers[3]) // what came late was given back
			}
		})
	}
}

// "Without a majority, no lease is granted, and the votes of the living nodes are released."
func TestBackend_MajorityDown(t *testing.T) {
	t.Parallel()
	servers := startNodes(t)
	b, _ := newBackend(t, addrs(servers), redlock.Options{NodeTimeout: time.Second})
	locker := lock.New(b, lock.Options{TTL: long})
	lease, err := locker.Acquire(bounded(t), "held before")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers[:3] {
		s.Close()
	}
	if _, err := locker.TryAcquire(bounded(t), "key"); !errors.Is(err, lock.ErrNotAcquired) || !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("TryAcquire: %v, want ErrNotAcquired and ErrNoQuorum", err)
	}
	_, err = locker.Acquire(bounded(t), "key")
	if !errors.Is(err, lock.ErrNotAcquired) || !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("Acquire: %v, want ErrNotAcquired and ErrNoQuorum", err)
	}
	c := lock.Claim{Key: "held before", Owner: "another", TTL: long}
	if _, err := b.Renew(bounded(t), c); !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew: %v, want ErrNoQuorum: too few answered to know", err)
	}
	if err := lease.Release(); !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrNoQuorum: too few answered to know", err)
	}
	awaitEmpty(t, servers[3], servers[4])
	if err := locker.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	mustBeEmpty(t, b, servers[3], servers[4])
}

// Holder: "ErrNoQuorum: too few nodes answered", also where those that do not may make a quorum for an owner.
func TestBackend_HolderUnknown(t *testing.T) {
	servers := startNodes(t)
	b, _ := newBackend(t, addrs(servers), redlock.Options{NodeTimeout: patience})
	mine := lock.Claim{Key: "key", Owner: "me", TTL: long}
	mustGrant(t, b, mine)
	if h, err := b.Holder(bounded(t), "key"); err != nil || h.Owner != "me" {
		t.Errorf("Holder: %+v, %v; want me", h, err)
	}
	for _, s := range servers {
		testserver.Until(t, "the last nodes have granted it", patience, func() bool { return len(s.Keys()) > 0 })
	}
	servers[0].FlushAll()
	servers[1].FlushAll()
	servers[2].Close()
	if h, err := b.Holder(bounded(t), "key"); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("Holder: %+v, %v; want ErrNoQuorum", h, err)
	}
}

// "An operation waits for Options.NodeTimeout at most": each returns while three clients still wait. "If too few nodes
// answer, the error is ErrNoQuorum".
func TestBackend_MajorityHangs(t *testing.T) {
	t.Parallel()
	servers := startNodes(t)
	b, gates := newBackend(t, addrs(servers), redlock.Options{NodeTimeout: brief})
	mine := lock.Claim{Key: "mine", Owner: "me", TTL: long}
	mustGrant(t, b, mine)
	for _, g := range gates[:3] {
		g.hold()
	}
	c := lock.Claim{Key: "key", Owner: "me", TTL: long}
	if g, err := b.Acquire(bounded(t), c); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("Acquire: %+v, %v; want ErrNoQuorum", g, err)
	}
	if _, err := b.Renew(bounded(t), mine); !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew: %v, want ErrNoQuorum: too few answered to know", err)
	}
	if err := b.Release(bounded(t), mine); !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrNoQuorum: too few answered to know", err)
	}
	for _, g := range gates[:3] {
		g.open()
	}
	awaitEmpty(t, servers...)
	mustBeEmpty(t, b, servers...)
}

// Close waits for two NodeTimeouts at most: it returns while the clients still try.
func TestBackend_CloseWhileClientsHang(t *testing.T) {
	b, gates := newBackend(t, addrs(startNodes(t)), redlock.Options{NodeTimeout: 10 * time.Millisecond})
	for _, g := range gates {
		g.hold()
	}
	if g, err := b.Acquire(bounded(t), lock.Claim{Key: "key", Owner: "me", TTL: long}); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("Acquire: %+v, %v; want ErrNoQuorum", g, err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// "A late release does not free a key that a later request took": two nodes hear of the request only after the lease of the
// other three was released.
func TestBackend_StragglersAreReleased(t *testing.T) {
	servers := startNodes(t)
	b, gates := newBackend(t, addrs(servers), redlock.Options{NodeTimeout: patience})
	for _, g := range gates[:2] {
		g.hold()
	}
	c := lock.Claim{Key: "key", Owner: "me", TTL: long}
	mustGrant(t, b, c)
	for _, g := range gates[:2] {
		<-g.arrived
	}
	if err := b.Release(bounded(t), c); err != nil {
		t.Errorf("Release: %v", err)
	}
	for _, g := range gates[:2] {
		select {
		case name := <-g.arrived:
			t.Errorf("%s overtakes the request before it", name)
		default:
		}
		g.open()
	}
	mustBeEmpty(t, b, servers...)
}

// "A late release does not free a key that a later request took": a request that the client gave up arrives at a node when
// the owner already has the node's vote by a later request.
func TestBackend_LateRequests(t *testing.T) {
	for _, late := range [][]string{{"release"}, {"acquire", "release"}} {
		t.Run(strings.Join(late, " and "), func(t *testing.T) {
			nodes := addrs(startNodes(t)[:3])
			b, gates := newBackend(t, nodes, redlock.Options{Delay: time.Millisecond, NodeTimeout: patience})
			c := lock.Claim{Key: "key", Owner: "me", TTL: long, Queue: true}
			other := lock.Claim{Key: "key", Owner: "other", TTL: long}
			second, _ := newBackend(t, nodes[1:2], redlock.Options{NodeTimeout: patience})
			third, _ := newBackend(t, nodes[2:], redlock.Options{NodeTimeout: patience})
			mustGrant(t, second, other)
			mustGrant(t, third, other)
			first, _ := newBackend(t, nodes[:1], redlock.Options{NodeTimeout: patience})
			mustGrant(t, first, other) // a late request finds its script there
			if err := first.Release(bounded(t), other); err != nil {
				t.Fatal(err)
			}

			gates[0].delay(late...)
			g, err := b.Acquire(bounded(t), c)
			if err != nil || !g.Held {
				t.Fatalf("Acquire: %+v, %v; want held", g, err)
			}
			if err := second.Release(bounded(t), other); err != nil {
				t.Fatal(err)
			}
			for g.Held { // until the first and the second node agree
				if err := b.Wait(bounded(t), c, g); err != nil {
					t.Fatal(err)
				}
				if g, err = b.Acquire(bounded(t), c); err != nil {
					t.Fatal(err)
				}
			}
			gates[0].deliver(t, len(late))

			if err := third.Release(bounded(t), other); err != nil {
				t.Fatal(err)
			}
			all, _ := newBackend(t, nodes, redlock.Options{NodeTimeout: patience})
			if g, err := all.Acquire(bounded(t), other); err != nil || !g.Held {
				t.Errorf("Acquire by another: %+v, %v; want held: there are two holders", g, err)
			}
		})
	}
}

// A caller that leaves does not wait, and what its request gets is given back.
func TestBackend_CallerLeaves(t *testing.T) {
	servers := startNodes(t)
	b, gates := newBackend(t, addrs(servers), redlock.Options{NodeTimeout: patience})
	for _, g := range gates {
		g.hold()
	}
	ctx, cancel := context.WithCancelCause(bounded(t))
	failed := make(chan error, 1)
	go func() {
		_, err := b.Acquire(ctx, lock.Claim{Key: "key", Owner: "me", TTL: long})
		failed <- err
	}()
	<-gates[0].arrived
	left := errors.New("left the shop")
	cancel(left)
	if err := <-failed; !errors.Is(err, left) {
		t.Errorf("Acquire: %v, want the cause", err)
	}
	for _, g := range gates {
		g.open()
	}
	mustBeEmpty(t, b, servers...)
}

// "If nodes keep their data and are restarted one at a time, a renewed lease survives."
func TestBackend_RollingRestart(t *testing.T) {
	servers := startNodes(t)
	b, _ := newBackend(t, addrs(servers), redlock.Options{NodeTimeout: patience})
	c := lock.Claim{Key: "key", Owner: "me", TTL: long}
	mustGrant(t, b, c)
	for i, s := range servers {
		testserver.Until(t, "the last nodes have granted it", patience, func() bool { return len(s.Keys()) > 0 })
		s.Close()
		if _, err := b.Renew(bounded(t), c); err != nil {
			t.Errorf("Renew without node %d: %v", i, err)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Release(bounded(t), c); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// A lease outlives nodes that restart empty, as long as a quorum remembers. "ErrLost means that so many nodes refuse
// that no quorum can hold the key for this owner." "A renewal never takes a key on a node again".
func TestBackend_NodesForget(t *testing.T) {
	servers := startNodes(t)
	b, _ := newBackend(t, addrs(servers), redlock.Options{NodeTimeout: patience})
	c := lock.Claim{Key: "key", Owner: "me", TTL: long}
	mustGrant(t, b, c)
	for i, want := range []error{nil, nil, lock.ErrLost} {
		testserver.Until(t, "the node has granted it", patience, func() bool { return len(servers[i].Keys()) > 0 })
		servers[i].FlushAll()
		if _, err := b.Renew(bounded(t), c); !errors.Is(err, want) {
			t.Errorf("Renew after %d of 5 forgot: %v, want %v", i+1, err, want)
		}
		if keys := servers[i].Keys(); len(keys) > 0 {
			t.Errorf("node %d has %q after a renewal", i, keys)
		}
	}
}
