package crowd

import (
	"cmp"
	"slices"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// Timeline is what some requests of a race did, by the shop's own account, ordered by
// the moment at which each read the stock.
type Timeline struct {
	Requests []Request `json:"requests"`

	// Pair is empty, or the indexes of two requests that read the same stock and both
	// wrote back what they computed from it: the first two that did so.
	Pair []int `json:"pair,omitempty"`
}

// Request is one request. Its times are in microseconds since the earliest of its
// Timeline; 0 for steps that it did not take.
type Request struct {
	Buyer    string `json:"buyer"`
	Accepted bool   `json:"accepted"`
	shopclient.Trace
}

// timeline shows at most n requests for the most wanted SKU, around the first pair if
// there is one; nil if the shop reported no steps.
func (l Log) timeline(n int) *Timeline {
	var all []Request
	for _, r := range l.Records {
		if r.Trace != nil && r.Trace.Read > 0 && r.Lines[0].SKU == l.SKU {
			all = append(all, Request{r.Buyer, r.Outcome == Ordered, *r.Trace})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Request) int { return cmp.Or(cmp.Compare(a.Read, b.Read), cmp.Compare(a.Buyer, b.Buyer)) })
	t := &Timeline{Requests: all[:min(n, len(all))]}
	if from, to, found := firstPair(all); found && to-from < n {
		begin := max(0, to-n+1, min(from-2, len(all)-n))
		t.Requests, t.Pair = all[begin:min(begin+n, len(all))], []int{from - begin, to - begin}
	} else if found {
		t.Requests, t.Pair = []Request{all[from], all[to]}, []int{0, 1}
	}
	t.Requests = slices.Clone(t.Requests)
	start := t.Requests[0].Begun
	for _, r := range t.Requests {
		start = min(start, r.Begun)
	}
	for i := range t.Requests {
		for _, at := range t.Requests[i].Steps() {
			if *at > 0 {
				*at -= start
			}
		}
	}
	return t
}

// firstPair finds the first two requests that read the same and wrote the same.
func firstPair(byRead []Request) (from, to int, found bool) {
	first := map[int64]int{} // that read this many units and wrote back
	for i, r := range byRead {
		if !r.Accepted || r.Wrote == nil {
			continue
		}
		earlier, met := first[r.Seen]
		if !met {
			first[r.Seen] = i
		} else if *byRead[earlier].Wrote == *r.Wrote {
			return earlier, i, true
		}
	}
	return 0, 0, false
}

// Locks are how requests waited for the strategy's lock and held it, by the shop's own
// account.
type Locks struct {
	Requests int64   `json:"requests"` // that had a lock
	WaitMS   Latency `json:"wait_ms"`  // from asking to having
	HoldMS   Latency `json:"hold_ms"`  // from having to giving it back, or the commit of those who answer before

	// Overlaps is how many had the lock of the most wanted SKU before the holder before had
	// committed. A batch that one lease serves is one holder.
	Overlaps int64 `json:"overlaps"`
}

// locks returns nil if no request had a lock.
func (l Log) locks() *Locks {
	type tenure struct {
		held, done int64 // in microseconds
		wrote      bool
	}
	var wait, hold []time.Duration
	var tenures []tenure
	for _, r := range l.Records {
		if r.Trace == nil || r.Trace.LockAsked == 0 || r.Trace.LockHeld == 0 {
			continue
		}
		t := *r.Trace
		done := cmp.Or(t.Committed, t.Read)
		wait = append(wait, microseconds(t.LockHeld-t.LockAsked))
		hold = append(hold, microseconds(cmp.Or(t.Released, done)-t.LockHeld))
		if r.Lines[0].SKU == l.SKU {
			tenures = append(tenures, tenure{t.LockHeld, done, r.Outcome == Ordered})
		}
	}
	if len(wait) == 0 {
		return nil
	}
	locks := &Locks{Requests: int64(len(wait)), WaitMS: percentiles(wait), HoldMS: percentiles(hold)}
	slices.SortFunc(tenures, func(a, b tenure) int { return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.done, b.done)) })
	for i := 1; i < len(tenures); i++ {
		before, next := tenures[i-1], tenures[i]
		if before.wrote && before.held < next.held && next.held < before.done {
			locks.Overlaps++
		}
	}
	return locks
}

func microseconds(n int64) time.Duration { return max(0, time.Duration(n)*time.Microsecond) }
