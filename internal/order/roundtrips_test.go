package order_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// requests counts scripts that Redis has run; what else go-redis sends is of new connections.
type requests struct{ atomic.Int64 }

func (r *requests) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if strings.HasPrefix(cmd.Name(), "eval") {
			r.Add(1)
		}
	}
}

// DialHook implements redis.Hook.
func (r *requests) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (r *requests) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { defer r.count(cmd); return next(ctx, cmd) }
}

// ProcessPipelineHook implements redis.Hook.
func (r *requests) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { defer r.count(cmds...); return next(ctx, cmds) }
}

// The table in docs/strategies.md: statements of orders of buyers who have bought before, BEGIN and COMMIT included,
// and commands for Redis.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/strategies.md")
	if err != nil {
		t.Fatal(err)
	}
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		var statements atomic.Int64
		database := kind.New(t, "").Through(t, func(string) testserver.Fate { statements.Add(1); return testserver.Pass })
		server := miniredis.RunT(t)
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true, DisableIdentity: true})
		t.Cleanup(func() { _ = client.Close() })
		asked := new(requests)
		client.AddHook(asked)

		const crowd = 64
		g := gather(t, database.Migrated(t), func(c *config) { c.maxOpen, c.backend = 10, lock.NewRedis(client) })
		g.serve()
		skus := make([]string, crowd)
		for i := range skus {
			skus[i] = fmt.Sprintf("sku-%02d", i)
			g.supply(t, skus[i], 1_000)
		}
		cart := func(i, lines int) (all []order.Line) {
			for n := range lines {
				all = append(all, order.Line{SKU: skus[(i+n)%crowd], Units: 1})
			}
			return all
		}
		count := func(do func()) string {
			statements.Store(0)
			asked.Store(0)
			do()
			return fmt.Sprintf("%d + %d", statements.Load(), asked.Load())
		}
		for _, name := range strategy.Names() {
			g := &gathering{bundle: g.by(name)}
			released := func(skus int) { // lanes answer before they release their leases
				if name == "lanes" || name == "redis" {
					await(t, "commands for leases", 2*skus, func() int { return int(asked.Load()) })
				}
			}
			asked.Store(0)
			g.mustPlace(t, order.Request{Buyer: name, Key: "first", Lines: cart(0, 3)})
			released(3)
			got := []string{"`" + name + "`"}
			for _, lines := range []int{1, 3} {
				got = append(got, count(func() {
					g.mustPlace(t, order.Request{Buyer: name, Key: fmt.Sprint(lines), Lines: cart(0, lines)})
					released(lines)
				}))
			}
			if name == "lanes" || name == "batch" {
				for i := range crowd { // new buyers, and SKUs whose names are not known yet
					asked.Store(0)
					g.mustPlace(t, purchase(nth(i), "first "+name, skus[i], 1))
					released(1)
				}
				for _, lines := range []int{1, 3} {
					got = append(got, count(func() {
						var all []order.Request
						for i := range crowd {
							all = append(all, order.Request{Buyer: nth(i), Key: fmt.Sprint(name, lines), Lines: cart(i*(lines-1), lines)})
						}
						g.together(t, "sku-00", all...)
						for i := range g.answers {
							g.want(t, "together", i, nil)
						}
						released(map[int]int{1: 1, 3: crowd}[lines])
					}))
				}
			}
			if row := "| " + strings.Join(got, " | ") + " |"; !strings.Contains(string(document), row) {
				t.Errorf("docs/strategies.md lacks\n%s", row)
			}
		}
	})
}
