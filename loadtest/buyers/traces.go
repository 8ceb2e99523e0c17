package buyers

import (
	"cmp"
	"slices"
	"sync"

	"example.com/shop/loadtest/shopclient"
)

// Traced is what a request did by the shop's own account.
type Traced struct {
	Buyer    string
	Accepted bool
	shopclient.Trace
}

// mostTraced is how many requests a race remembers. Beside them it keeps, to find
// those that collide, one for each level of the stock that was read and written back.
const mostTraced = 200

// mostLevels bounds the latter. A collision at a level that was read first after
// that many others is not seen.
const mostLevels = 10_000

// Traces are those of a race's requests that a picture needs. They may be added
// by many goroutines at once.
type Traces struct {
	mu       sync.Mutex
	earliest []Traced         // by the time at which they read the stock
	first    map[int64]Traced // that read this level and wrote back what it reckoned
	pair     []Traced
	locks    locks
}

// add takes a request that was accepted or found the stock sold out. Those about
// another SKU than the most wanted one are not for the picture, which shows who read
// what, nor are those that read nothing.
func (t *Traces) add(buyer string, accepted, wanted bool, trace *shopclient.Trace) {
	if trace == nil {
		return
	}
	one := Traced{buyer, accepted, *trace}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locks.add(one, wanted)
	if !wanted || one.Read.IsZero() {
		return
	}
	if at, _ := slices.BinarySearchFunc(t.earliest, one, byRead); at < mostTraced {
		t.earliest = slices.Insert(t.earliest, at, one)
		t.earliest = t.earliest[:min(mostTraced, len(t.earliest))]
	}
	if accepted && one.Wrote != nil {
		t.compare(one)
	}
}

// compare looks for an earlier collision than the one that is known.
func (t *Traces) compare(one Traced) {
	if t.first == nil {
		t.first = map[int64]Traced{}
	}
	other, met := t.first[one.Seen]
	if !met {
		if len(t.first) < mostLevels {
			t.first[one.Seen] = one
		}
		return
	}
	if byRead(one, other) < 0 {
		t.first[one.Seen] = one
		one, other = other, one
	}
	if *one.Wrote == *other.Wrote && (t.pair == nil || byRead(one, t.pair[1]) < 0) {
		t.pair = []Traced{other, one}
	}
}

// Around returns at most n requests, by the time at which they read the stock,
// with the indexes of the first two that read the same and both wrote back what
// they reckoned; none if there are no such. n is at least 2.
func (t *Traces) Around(n int) (requests []Traced, pair []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pair == nil {
		return slices.Clone(t.earliest[:min(n, len(t.earliest))]), nil
	}
	from, found := slices.BinarySearchFunc(t.earliest, t.pair[0], byRead)
	to, also := slices.BinarySearchFunc(t.earliest, t.pair[1], byRead)
	if !found || !also || to-from >= n {
		return slices.Clone(t.pair), []int{0, 1}
	}
	begin := max(0, min(from-2, len(t.earliest)-n))
	if to >= begin+n {
		begin = to - n + 1
	}
	return slices.Clone(t.earliest[begin:min(begin+n, len(t.earliest))]), []int{from - begin, to - begin}
}

func byRead(a, b Traced) int {
	return cmp.Or(a.Read.Compare(b.Read), cmp.Compare(a.Buyer, b.Buyer))
}
