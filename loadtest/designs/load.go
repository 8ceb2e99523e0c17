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
)

// crowd is buyers who ask again as soon as they are answered, each for random SKUs, one unit of each.
type crowd struct {
	seller        Seller
	skus          []string
	buyers, lines int // lines: SKUs in an order
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

// run returns when all buyers have left. All of them call stays at the same time; a buyer for whom it is false leaves.
func (c crowd) run(ctx context.Context, stays func(receipt) bool) {
	var all sync.WaitGroup
	for i := range c.buyers {
		all.Go(func() {
			for ctx.Err() == nil && stays(c.buy(ctx, fmt.Sprint("buyer-", i))) {
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
	r := receipt{Order: o.ID, Answer: sold, Asked: time.Now()}
	err := c.seller.Buy(ctx, o)
	r.Answered = time.Now()
	if errors.Is(err, errSoldOut) {
		r.Answer = refused
	} else if err != nil {
		r.Answer, r.Reason = failed, err.Error()
	}
	return r
}

// loadCase is a crowd, and what it wants.
type loadCase struct {
	name, about, figure string // figure: in the JSON
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
		{"1 SKU, 64", "orders/s of 64 buyers who all want one SKU", hot, 1, 64, 1, plenty},
		{"1 SKU, 512", "orders/s of 512 such buyers", "orders_per_second_1_sku_512_buyers", 1, 512, 1, plenty},
		{"64 SKUs, 64", "orders/s of 64 buyers, each order of one of 64 SKUs", "orders_per_second_64_skus_64_buyers",
			64, 64, 1, plenty},
		{"64 SKUs, 512", "orders/s of 512 such buyers", "orders_per_second_64_skus_512_buyers", 64, 512, 1, plenty},
		{"carts, 64", "orders/s of 64 buyers, each order of three of 64 SKUs", "orders_per_second_carts_of_3_64_buyers",
			64, 64, 3, plenty},
		{"refused", "refusals/s of 64 buyers when 1,000 units are sold", "refusals_per_second_64_buyers", 1, 64, 1, scarce},
	}
}

// measure lets the crowd of a case buy fresh SKUs from a design that is opened for it, and adds what came of it to a row.
// Answers count after half a second of warm-up.
func (row *Row) measure(ctx context.Context, on Servers, c loadCase, length time.Duration) error {
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
	var problem atomic.Value
	answers := map[string]*atomic.Int64{sold: {}, refused: {}, failed: {}}
	count := func(r receipt) {
		answers[r.Answer].Add(1)
		if r.Answer == failed {
			problem.CompareAndSwap(nil, r.Reason)
		}
	}
	buyers, measured := crowd{seller, slices.Sorted(maps.Keys(units)), c.buyers, c.lines}, sold
	if c.units == scarce {
		buyers.run(ctx, func(r receipt) bool { count(r); return answers[refused].Load() == 0 })
		row.Load["unsold_units"], measured = float64(scarce-answers[sold].Load()), refused
	}
	var inTime atomic.Int64
	from := time.Now().Add(min(length, 500*time.Millisecond))
	to := from.Add(length)
	buyers.run(ctx, func(r receipt) bool {
		if count(r); r.Answer == measured && r.Answered.After(from) && r.Answered.Before(to) {
			inTime.Add(1)
		}
		return r.Answered.Before(to)
	})
	row.Load[c.figure] = float64(inTime.Load()) / length.Seconds()
	ended := time.Now()
	err = errors.Join(seller.Close(), context.Cause(ctx))
	row.Load["behind_seconds"] = max(row.Load["behind_seconds"], time.Since(ended).Seconds())
	if n := answers[failed].Load(); n > 0 {
		row.Errors = append(row.Errors, fmt.Sprintf("%s, %s: %d errors, the first: %.200v", row.Name, c.name, n, problem.Load()))
	}
	return err
}
