package zklock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/testserver"
)

// "The loss of a leader ends no session": on three servers, of which the one that leads is killed, a lease is renewed
// through another, and its waiter comes next.
func TestBackend_LeaderLost(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t, testserver.OpenZooKeeperEnsemble).Servers
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	root := newRoot()
	holder := connectAll(t, addrs, zklock.Options{Root: root})
	waiter := connectAll(t, addrs, zklock.Options{Root: root})
	first := lock.Claim{Key: "key", Owner: "first", TTL: 10 * time.Second}
	next := lock.Claim{Key: "key", Owner: "next", TTL: 10 * time.Second, Queue: true}
	held := ask(t, holder, first, false)
	g := ask(t, waiter, next, true)
	leads := func(s *testserver.Server) bool {
		answer, err := testserver.ZooKeeperStatus(t.Context(), s.Addr())
		return err == nil && strings.Contains(answer, "\nMode: leader")
	}
	leader := -1
	testserver.Until(t, "one of the servers leads", time.Minute, func() bool {
		leader = slices.IndexFunc(servers, leads)
		return leader >= 0
	})
	testserver.Must(t, servers[leader].Do(t.Context(), testserver.Kill))
	if err := renew(t, holder, first); err != nil {
		t.Fatalf("Renew: %v", err)
	}
	mustLive(t, held)
	if err := holder.Release(bounded(t), first); err != nil {
		t.Errorf("Release: %v", err)
	}
	for ctx := bounded(t); g.Held && ctx.Err() == nil; {
		if err := waiter.Wait(ctx, next, g); err != nil {
			t.Fatalf("Wait: %v", err)
		}
		var err error
		if g, err = waiter.Acquire(ctx, next); err != nil {
			t.Fatalf("Acquire: %v", err)
		}
	}
	if g.Fence <= held.Fence {
		t.Errorf("fence %d after %d", g.Fence, held.Fence)
	}
}
