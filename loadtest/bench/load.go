package bench

import (
	"context"
	"strings"
	"time"

	"example.com/shop/loadtest/crowd"
)

// patience is for one answer, and for the first of each buyer: more than a shop's own limit.
const patience = 2 * time.Minute

// round is what came of a load. Processor time is a part of the machine's.
type round struct {
	crowd.Summary
	Problem string // why orders came to nothing; empty if none did

	Client     float64
	Shops      float64
	BuyerBytes int64  // grow: memory that each buyer took at the peak
	Wrong      string // with the books
}

// race lets a crowd buy: each buyer one unit at the same moment for a length of 0, and again and again for any other.
// That begins when each buyer has had an answer, and a fifth of the length has passed: before, the shop's own
// connections would be dialled, and a strategy with a long queue had not shown its pace.
func race(ctx context.Context, who *row, skus []string, length time.Duration) (round, error) {
	r := crowd.Race{
		Strategy: who.strategy, SKUs: skus, Warm: length / 5,
		Load: crowd.Load{Buyers: who.buyers, Duration: length, Lines: 1, Think: -1, Timeout: patience},
		// An error counts as one, and keeps its buyer from spinning where a shop fails at once.
		RequestTimeout: patience, Tries: 1, MaxPause: 10 * time.Millisecond,
	}
	for _, p := range who.procs {
		r.Shops = append(r.Shops, "http://"+p.Addr)
	}
	log, err := r.Run(ctx)
	return round{Summary: log.Summary(), Problem: strings.Join(log.Notes(), "; ")}, err
}
