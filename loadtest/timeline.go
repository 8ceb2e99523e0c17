package main

import (
	"time"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
)

// pictured is how many requests of a race are shown one by one.
const pictured = 12

// timeline is nil if the shop told no steps.
func timeline(traces *buyers.Traces) *report.Timeline {
	requests, pair := traces.Around(pictured)
	if len(requests) == 0 {
		return nil
	}
	start := requests[0].Begun
	for _, r := range requests {
		if r.Begun.Before(start) {
			start = r.Begun
		}
	}
	after := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.Sub(start).Microseconds()
	}
	drawn := &report.Timeline{Pair: pair}
	for _, r := range requests {
		drawn.Requests = append(drawn.Requests, report.Request{
			Buyer: r.Buyer, Accepted: r.Accepted, Seen: r.Seen, Wrote: r.Wrote,
			Begun: after(r.Begun), LockAsked: after(r.LockAsked), LockHeld: after(r.LockHeld), Read: after(r.Read),
			Writing: after(r.Writing), Written: after(r.Written), Committed: after(r.Committed), Released: after(r.Released),
		})
	}
	return drawn
}
