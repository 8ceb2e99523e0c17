package crowd

import (
	"cmp"
	"slices"

	"example.com/shop/loadtest/shopclient"
)

// Timeline is what some requests of a race did, by the shop's own account, ordered by the moment at which each read the
// stock.
type Timeline struct {
	Requests []Request `json:"requests"`

	// Pair is empty, or the indexes of two requests that read the same stock and both wrote back what they computed
	// from it: the first two that did so.
	Pair []int `json:"pair,omitempty"`
}

// Request is one request. Its times are in microseconds since the earliest of its Timeline; 0 for steps that it did not
// take.
type Request struct {
	Buyer    string `json:"buyer"`
	Accepted bool   `json:"accepted"`
	shopclient.Trace
}

// timeline shows at most n requests for the most wanted SKU, around the first pair if there is one; nil if the shop
// reported no steps.
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
		if !met || byRead[earlier].Committed > 0 && r.Read > byRead[earlier].Committed { // the units may have come back since
			first[r.Seen] = i
		} else if *byRead[earlier].Wrote == *r.Wrote {
			return earlier, i, true
		}
	}
	return 0, 0, false
}
