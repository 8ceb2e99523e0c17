package lab

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/testserver"
)

// redlockOver returns the lock over five nodes: those at addrs, and the rest down.
func redlockOver(t *testing.T, addrs ...string) lock.Backend {
	t.Helper()
	nodes := make([]redis.UniversalClient, 5)
	for i := range nodes {
		o, err := redis.ParseURL("redis://" + append(slices.Clone(addrs), slices.Repeat([]string{"127.0.0.1:1"}, 5)...)[i])
		testserver.Must(t, err)
		o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1 // a node that is down fails at once
		nodes[i] = redis.NewClient(o)
		t.Cleanup(func() { _ = nodes[i].Close() })
	}
	return Redsync(nodes...)
}

// "A lease from a majority of five Redis servers survives the loss of two servers. It has no fence".
func TestRedsync(t *testing.T) {
	t.Parallel()
	for name, node := range map[string]func(t *testing.T, i int) string{
		"embedded": func(t *testing.T, _ int) string { t.Helper(); return miniredis.RunT(t).Addr() },
		"Redis 8":  func(t *testing.T, i int) string { t.Helper(); return fmt.Sprintf("%s/%d", testserver.Redis(t), i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := []string{node(t, 0), node(t, 1), node(t, 2), node(t, 3), node(t, 4)}
			want := func(what string, got, want error) {
				t.Helper()
				if !errors.Is(got, want) {
					t.Errorf("%s: got %v, want %v", what, got, want)
				}
			}
			acquire := func(b lock.Backend, c lock.Claim, held bool) {
				t.Helper()
				g, err := b.Acquire(t.Context(), c)
				if want("acquire", err, nil); g.Held != held || g.Fence != 0 {
					t.Errorf("acquire: got %+v, want held %v, and no fence", g, held)
				}
			}
			renew := func(b lock.Backend, c lock.Claim) error {
				_, err := b.Renew(t.Context(), c)
				return err
			}
			for _, up := range []int{5, 3} {
				b := redlockOver(t, nodes[:up]...)
				mine, other := lock.Claim{Key: "mug", Owner: "me", TTL: ttl}, lock.Claim{Key: "mug", Owner: "other", TTL: ttl}
				acquire(b, mine, false)
				acquire(b, other, true)
				mine.TTL = 2 * ttl
				want("renewal", renew(b, mine), nil)
				if h, err := b.Holder(t.Context(), "mug"); err != nil || h.Owner != "me" || h.Remaining <= ttl {
					t.Errorf("%d up: got %+v, %v, want me, with the renewed TTL", up, h, err)
				}
				want("renewal by another", renew(b, other), lock.ErrLost)
				want("release by another", b.Release(t.Context(), other), lock.ErrLost)
				want("eviction", b.Evict(t.Context(), "mug", "me"), nil)
				want("renewal after it", renew(b, mine), lock.ErrLost)
				want("release after it", b.Release(t.Context(), mine), lock.ErrLost)
				acquire(b, other, false)
				if err := renew(redlockOver(t, nodes[:2]...), other); err == nil || errors.Is(err, lock.ErrLost) {
					t.Errorf("renewal by a minority: got %v, want an error that is not %v", err, lock.ErrLost)
				}
				want("release", b.Release(t.Context(), other), nil)
			}
		})
	}
}

// The strategy redlock "survives the loss of two servers". Without a majority, it sells nothing, and leaves no key.
func TestShop_redlockNodesDown(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	var nodes []*miniredis.Miniredis
	for range 5 {
		nodes = append(nodes, miniredis.RunT(t))
		s.Redlock = append(s.Redlock, nodes[len(nodes)-1].Addr())
	}
	shop := start(t, s)
	nodes[0].Close()
	nodes[3].Close()
	shop.supply(t, "last", 1)
	shop.buy(t, http.StatusCreated, "first", "last", 1, "Shop-Strategy: redlock")
	shop.buy(t, http.StatusConflict, "second", "last", 1, "Shop-Strategy: redlock")
	nodes[4].Close()
	shop.buy(t, http.StatusServiceUnavailable, "third", "mug", 1, "Shop-Strategy: redlock")
	if keys := append(nodes[1].Keys(), nodes[2].Keys()...); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}
