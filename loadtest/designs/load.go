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

// crowd is buyers who ask again as soon as they are answered, each for random SKUs, one unit of each.
type crowd struct {
	seller Seller
	skus   []string
	lines  int                // SKUs in an order
	stays  func(receipt) bool // reports whether a buyer asks again; called by all of them at the same time
}

// receipt is what a buyer keeps of an answer.
type receipt struct {
	Order    string    `json:"order"`
	Answer   string    `json:"answer"`
	Reason   string    `json:"reason,omitempty"` // of a failure
	Asked    time.Time `json:"asked"`
	Answered time.Time `json:"answered"`
}

// The answers.
const (
	sold    = "sold"
	refused = "refused"
	failed  = "failed"
)

// run returns when all buyers have left.
func (c crowd) run(ctx context.Context, buyers int) {
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			for ctx.Err() == nil && c.stays(c.buy(ctx, fmt.Sprint("buyer-", i))) {
			}
		})
	}
	all.Wait()
}

func (c crowd) buy(ctx context.Context, buyer string) receipt {
	o := Order{ID: uuid.Must(uuid.NewV7()).String(), Buyer: buyer}
	for len(o.SKUs) < c.lines {
		if sku := c.skus[rand.IntN(len(c.skus))]; !slices.Contains(o.SKUs, sku) {
			o.SKUs = append(o.SKUs, sku)
		}
	}
	slices.Sort(o.SKUs)
	r := receipt{Order: o.ID, Answer: refused, Asked: time.Now()}
	ok, err := c.seller.Buy(ctx, o)
	r.Answered = time.Now()
	switch {
	case err != nil:
		r.Answer, r.Reason = failed, err.Error()
	case ok:
		r.Answer = sold
	}
	return r
}

// loadCase is a crowd, and what it wants.
type loadCase struct {
	name, figure        string // in the table, and in the JSON
	skus, buyers, lines int
	units               int64 // of each SKU
}

const (
	plenty = 100_000_000 // units of each SKU, more than any case sells
	scarce = 1_000       // units that are soon sold out: refusals are counted

	hot = "orders_per_second_1_sku_64_buyers" // the figure that the picture shows
)

func loadCases() []loadCase {
	return []loadCase{
		{"1 SKU, 64", hot, 1, 64, 1, plenty},
		{"1 SKU, 512", "orders_per_second_1_sku_512_buyers", 1, 512, 1, plenty},
		{"64 SKUs, 64", "orders_per_second_64_skus_64_buyers", 64, 64, 1, plenty},
		{"64 SKUs, 512", "orders_per_second_64_skus_512_buyers", 64, 512, 1, plenty},
		{"carts, 64", "orders_per_second_carts_of_3_64_buyers", 64, 64, 3, plenty},
		{"refused", "refusals_per_second_64_buyers", 1, 64, 1, scarce},
	}
}

// measure lets the crowd of a case buy fresh SKUs from a design that is opened for it, and adds what came of it to a row.
func (row *Row) measure(ctx context.Context, on Servers, c loadCase, length time.Duration) (err error) {
	units := map[string]int64{}
	for range c.skus {
		units[uuid.NewString()] = c.units
	}
	if err := row.putUpForSale(ctx, on, units); err != nil {
		return err
	}
	seller, err := row.open(ctx, on)
	if err != nil {
		return err
	}
	var orders, refusals, failures atomic.Int64
	var problem atomic.Value
	count := func(r receipt) {
		switch r.Answer {
		case sold:
			orders.Add(1)
		case refused:
			refusals.Add(1)
		case failed:
			failures.Add(1)
			problem.CompareAndSwap(nil, r.Reason)
		}
	}
	buyers, counter := crowd{seller: seller, skus: slices.Sorted(maps.Keys(units)), lines: c.lines}, &orders
	if c.units == scarce {
		buyers.stays = func(r receipt) bool { count(r); return refusals.Load() == 0 }
		buyers.run(ctx, c.buyers)
		row.Load["unsold_units"], counter = float64(scarce-orders.Load()), &refusals
	}
	row.Load[c.figure] = buyers.rate(ctx, c.buyers, count, counter, length)
	ended := time.Now()
	err = errors.Join(seller.Close(), context.Cause(ctx))
	row.Load["behind_seconds"] = max(row.Load["behind_seconds"], time.Since(ended).Seconds())
	if n := failures.Load(); n > 0 {
		row.Errors = append(row.Errors, fmt.Sprintf("%s, %s: %d errors, the first: %.200v", row.Name, c.name, n, problem.Load()))
	}
	return err
}

// rate returns by how much a counter grows in a second, while buyers ask, after half a second of warm-up.
func (c crowd) rate(ctx context.Context, buyers int, count func(receipt), counter *atomic.Int64, length time.Duration) float64 {
	var over atomic.Bool
	c.stays = func(r receipt) bool { count(r); return !over.Load() }
	var all sync.WaitGroup
	all.Go(func() { c.run(ctx, buyers) })
	_ = order.Pause(ctx, min(length, 500*time.Millisecond))
	began, before := time.Now(), counter.Load()
	_ = order.Pause(ctx, length)
	perSecond := float64(counter.Load()-before) / time.Since(began).Seconds()
	over.Store(true)
	all.Wait()
	return perSecond
}
