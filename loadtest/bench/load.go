package bench

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"example.com/shop/loadtest/crowd"
)

// patience is for one answer, and for the first of each buyer: more than a shop's own limit.
const patience = 2 * time.Minute

// round is what came of a load. Durations are in milliseconds, processor time is a part of the machine's.
type round struct {
	Orders     int64 // in all, those of the warm-up and after the end included
	Refusals   int64
	Errors     int64 // orders with another answer, or none
	Unknown    int64 // of these, those that the shop may have placed all the same
	FirstError string

	OrdersPerSecond   float64
	RefusalsPerSecond float64
	P50               float64 // from an order's sending to its answer; errors included
	P99               float64

	Client     float64
	Shops      float64
	BuyerBytes int64  // grow: memory that each buyer took at the peak
	Wrong      string // with the books
}

func (r round) perSecond() float64 { return r.OrdersPerSecond + r.RefusalsPerSecond }

// race lets a crowd buy: each buyer one unit at the same moment for a length of 0, and again and again for any other.
// That begins when each buyer has had an answer, and a fifth of the length has passed: before, the shop's own
// connections would be dialled, and a strategy with a long queue had not shown its pace.
func race(ctx context.Context, who *row, skus []string, length time.Duration) (round, error) {
	r := crowd.Race{
		Strategy: who.strategy, SKUs: skus, Warm: length / 5,
		Load: crowd.Load{Buyers: who.buyers, Pace: crowd.Pace{Duration: length}, Lines: 1, Think: -1, Timeout: patience},
		// An error counts as one, and keeps its buyer from spinning where a shop fails at once.
		RequestTimeout: patience, Retry: crowd.Retry{Tries: 1, Base: 10 * time.Millisecond},
	}
	for _, p := range who.procs {
		r.Shops = append(r.Shops, "http://"+p.Addr)
	}
	if length > 0 {
		r.Requests = math.MaxInt
	}
	log, err := r.Run(ctx)
	if length == 0 {
		length = log.Took + 1
	}
	return sum(log, length), err
}

// sum counts the answers, and for rates and latencies those of the length that counts: rates are of the answers in that
// time, latencies of the orders that were sent since it began.
func sum(log crowd.Log, length time.Duration) (r round) {
	took := []time.Duration{0} // what stays where nothing was sent
	for _, a := range log.Records {
		rate := 0.0
		if a.Ended >= log.Began && a.Ended < log.Began+length {
			rate = 1 / length.Seconds()
		}
		switch a.Outcome {
		case crowd.Ordered:
			r.Orders++
			r.OrdersPerSecond += rate
		case crowd.Refused:
			r.Refusals++
			r.RefusalsPerSecond += rate
		case crowd.Unknown:
			r.Unknown++
			fallthrough
		case crowd.Failed:
			r.Errors++
			r.FirstError = cmp.Or(r.FirstError, a.Reason)
		}
		if a.Ended-a.Latency >= log.Began {
			took = append(took, a.Latency)
		}
	}
	slices.Sort(took)
	last := len(took) - 1
	r.P50, r.P99 = ms(took[(last+1)/2]), ms(took[(last*99+99)/100])
	return r
}
