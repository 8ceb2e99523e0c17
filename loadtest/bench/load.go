package bench

import (
	"context"
	"strings"
	"time"

	"example.com/shop/loadtest/crowd"
)

// maxOpen is how many pending orders a shop lets a buyer have.
const maxOpen = 10

// patience is for one answer, and for the first of each buyer: more than a shop's own limit.
const patience = 2 * time.Minute

// round is what came of a load. Processor time is a part of the machine's.
type round struct {
	crowd.Summary
	Longest float64 // wait in ms for any answer, also before the time that counts, in which buyers may starve
	Problem string  // why orders came to nothing; empty if none did

	// What the buyers know: units that they have ordered, and units of orders with an unknown outcome or to be cancelled.
	Units     int64
	Unsettled int64

	Client     float64
	Shops      float64
	BuyerBytes int64  // grow: memory that each buyer took at the peak
	Wrong      string // with the books
}

// race lets a crowd buy: each buyer once at the same moment for a length of 0, and again and again for any other.
// That begins when each buyer has had an answer, and a fifth of the length has passed: before, the shop's own
// connections would be dialled, and a strategy with a long queue had not shown its pace.
func race(ctx context.Context, who row, c contest, skus []string, length time.Duration) (round, error) {
	r := crowd.Race{
		Strategy: who.strategy, Think: -1, Buyers: who.buyers, Duration: length, Timeout: patience,
		SKUs: skus, Skew: c.skew, Least: c.least, Lines: c.lines, Pay: c.pay, Cancel: c.cancel, Orders: maxOpen,
		// An error counts as one, and keeps its buyer from spinning where a shop fails at once.
		RequestTimeout: patience, Patience: crowd.Patience{Tries: 1, Pause: 10 * time.Millisecond, MaxPause: 10 * time.Millisecond},
	}
	for _, p := range who.procs {
		r.Shops = append(r.Shops, "http://"+p.Addr)
		if who.shops != nil {
			r.Keys, r.Operators = who.shops.Keys, append(r.Operators, "http://"+p.Operator)
		}
	}
	log, err := r.Run(ctx)
	one := round{Summary: log.Summary(), Problem: strings.Join(log.Notes(), "; ")}
	for _, order := range log.Records {
		one.Longest = max(one.Longest, crowd.Milliseconds(order.Latency))
		units := int64(len(order.Lines)) // one of each SKU
		switch {
		case order.Outcome == crowd.Unknown, order.Outcome == crowd.Ordered && order.Cancelled:
			one.Unsettled += units
		case order.Outcome == crowd.Ordered:
			one.Units += units
		}
	}
	return one, err
}
