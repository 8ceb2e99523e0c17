package designs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"example.com/shop/internal/order"
)

// loadCase is a crowd, and what it wants.
type loadCase struct {
	name    string
	figure  string // its name in the JSON
	skus    int
	buyers  int
	lines   int   // SKUs in an order, one unit of each
	units   int64 // of each SKU
	soldOut bool  // the stock ends, and refusals are counted
}

func loadCases() []loadCase {
	return []loadCase{
		{
			name: "1 SKU, 64", figure: hot,
			skus: 1, buyers: 64, lines: 1, units: plenty,
		},
		{
			name: "1 SKU, 512", figure: "orders_per_second_1_sku_512_buyers",
			skus: 1, buyers: 512, lines: 1, units: plenty,
		},
		{
			name: "64 SKUs, 64", figure: "orders_per_second_64_skus_64_buyers",
			skus: 64, buyers: 64, lines: 1, units: plenty,
		},
		{
			name: "64 SKUs, 512", figure: "orders_per_second_64_skus_512_buyers",
			skus: 64, buyers: 512, lines: 1, units: plenty,
		},
		{
			name: "carts, 64", figure: "orders_per_second_carts_of_3_64_buyers",
			skus: 64, buyers: 64, lines: 3, units: plenty,
		},
		{
			name: "refused", figure: "refusals_per_second_64_buyers",
			skus: 1, buyers: 64, lines: 1, units: scarce, soldOut: true,
		},
	}
}

const (
	plenty = 100_000_000 // units of each SKU, more than any case sells
	scarce = 1_000       // units where the stock ends
)

// figures are what came of a case.
type figures struct {
	perSecond float64       // orders acknowledged or, where the stock ends, buyers refused
	unsold    int64         // units that were left when the first buyer was refused, where the stock ends
	behind    time.Duration // how long after the last answer the last order was written
	problems  int64         // errors
	problem   error         // the first of them
}

// crowd is buyers who ask again as soon as they are answered.
type crowd struct {
	seller                 Seller
	skus                   []string
	lines                  int
	sold, refused, trouble atomic.Int64
	problem                atomic.Pointer[error]
}

// measure lets a crowd buy fresh SKUs from a design that is opened for it.
func measure(ctx context.Context, on Servers, d Design, c loadCase, length time.Duration) (f figures, err error) {
	units := map[string]int64{}
	for range c.skus {
		units[uuid.NewString()] = c.units
	}
	if err := putUpForSale(ctx, on.DB, units); err != nil {
		return f, err
	}
	if err := d.Prepare(ctx, on, units); err != nil {
		return f, err
	}
	seller, err := d.Open(ctx, on)
	if err != nil {
		return f, err
	}
	buyers := &crowd{seller: seller, skus: slices.Sorted(maps.Keys(units)), lines: c.lines}
	counter := &buyers.sold
	if c.soldOut {
		buyers.run(ctx, c.buyers, func() bool { return buyers.refused.Load() == 0 })
		f.unsold, counter = c.units-buyers.sold.Load(), &buyers.refused
	}
	f.perSecond = buyers.rate(ctx, c.buyers, counter, length)
	ended := time.Now()
	err = errors.Join(seller.Close(), context.Cause(ctx))
	f.behind, f.problems = time.Since(ended), buyers.trouble.Load()
	if first := buyers.problem.Load(); first != nil {
		f.problem = *first
	}
	return f, err
}

// rate returns by how much a counter grows in a second, while buyers ask, after half a second of warm-up.
func (c *crowd) rate(ctx context.Context, buyers int, counter *atomic.Int64, length time.Duration) (perSecond float64) {
	var over atomic.Bool
	var all sync.WaitGroup
	all.Go(func() { c.run(ctx, buyers, func() bool { return !over.Load() }) })
	_ = order.Pause(ctx, min(length, 500*time.Millisecond))
	began, before := time.Now(), counter.Load()
	_ = order.Pause(ctx, length)
	perSecond = float64(counter.Load()-before) / time.Since(began).Seconds()
	over.Store(true)
	all.Wait()
	return perSecond
}

// run lets buyers ask while goOn says so, and returns when all have their answers.
func (c *crowd) run(ctx context.Context, buyers int, goOn func() bool) {
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			for goOn() && ctx.Err() == nil {
				c.buy(ctx, fmt.Sprint("buyer-", i))
			}
		})
	}
	all.Wait()
}

// buy asks for one order of random SKUs.
func (c *crowd) buy(ctx context.Context, buyer string) {
	o := Order{ID: uuid.Must(uuid.NewV7()).String(), Buyer: buyer}
	for len(o.SKUs) < c.lines {
		if sku := c.skus[rand.IntN(len(c.skus))]; !slices.Contains(o.SKUs, sku) {
			o.SKUs = append(o.SKUs, sku)
		}
	}
	slices.Sort(o.SKUs)
	switch sold, err := c.seller.Buy(ctx, o); {
	case err != nil:
		c.trouble.Add(1)
		c.problem.CompareAndSwap(nil, &err)
	case sold:
		c.sold.Add(1)
	default:
		c.refused.Add(1)
	}
}
