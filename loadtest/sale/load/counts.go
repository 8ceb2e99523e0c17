package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Counts are what came of a load.
type Counts struct {
	Orders, Refusals int64 // answers in all, those of the warm-up and after the end included
	Errors           int64 // orders with another answer, or none
	Unknown          int64 // of these, those that the shop may have placed all the same
	First            error // the first error of one of the buyers

	OrdersPerSecond, RefusalsPerSecond float64

	P50, P99, Longest time.Duration // from an order's sending to its answer; errors included
}

// PerSecond is the rate of answers that were orders or refusals.
func (c Counts) PerSecond() float64 { return c.OrdersPerSecond + c.RefusalsPerSecond }

func sum(buyers []*buyer, length time.Duration) Counts {
	var c Counts
	var orders, refusals int64
	var took []time.Duration
	for _, b := range buyers {
		c.Orders += b.orders
		c.Refusals += b.refusals
		c.Errors += b.errors
		c.Unknown += b.unknown
		if c.First == nil {
			c.First = b.first
		}
		orders += b.timely[0]
		refusals += b.timely[1]
		took = append(took, b.took...)
	}
	c.OrdersPerSecond = float64(orders) / length.Seconds()
	c.RefusalsPerSecond = float64(refusals) / length.Seconds()
	c.P50, c.P99, c.Longest = percentiles(took)
	return c
}

// percentiles have three significant digits.
func percentiles(took []time.Duration) (p50, p99, longest time.Duration) {
	for _, d := range took {
		longest = max(longest, d)
	}
	h := hdrhistogram.New(1, max(2, longest.Microseconds()), 3)
	for _, d := range took {
		_ = h.RecordValue(d.Microseconds()) // fails only above the longest
	}
	at := func(percent float64) time.Duration {
		// A bucket's upper edge may lie above every value that is in it.
		return min(longest, time.Duration(h.ValueAtPercentile(percent))*time.Microsecond)
	}
	return at(50), at(99), longest
}
