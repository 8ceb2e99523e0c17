package buyers

import (
	"math/rand/v2"
	"testing"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// holder had the lock from held to released, in milliseconds, and committed a
// millisecond before that.
func holder(asked, held, released int64) *shopclient.Trace {
	at := time.UnixMilli
	return &shopclient.Trace{
		Begun: at(asked), LockAsked: at(asked), LockHeld: at(held), Read: at(held),
		Writing: at(held), Written: at(held), Committed: at(released - 1), Released: at(released),
	}
}

func TestTraces_Locks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all                 [][3]int64
		handOvers, overlaps int64
		wait, hold, over    time.Duration // the longest, in milliseconds
	}{
		"one after the other": {[][3]int64{{0, 1, 10}, {0, 11, 20}, {0, 25, 30}}, 2, 0, 25, 9, 6},
		"nobody waits":        {[][3]int64{{0, 1, 10}, {12, 13, 20}}, 0, 0, 1, 9, 0},
		// "Before the holder before them had committed."
		"two at once":      {[][3]int64{{0, 1, 10}, {0, 5, 12}, {0, 14, 20}}, 1, 1, 14, 9, 3},
		"before the reply": {[][3]int64{{0, 1, 10}, {0, 9, 20}}, 1, 0, 9, 11, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var traces Traces
			for _, i := range rand.Perm(len(c.all)) {
				traces.add("b", true, true, holder(c.all[i][0], c.all[i][1], c.all[i][2]))
			}
			traces.add("without a lock", true, true, request(1, 5, false))
			got := traces.Locks()
			if got.Requests != int64(len(c.all)) || got.HandOvers != c.handOvers || got.Overlaps != c.overlaps {
				t.Errorf("got %+v, want %d requests, %d hand-overs, %d overlaps", got, len(c.all), c.handOvers, c.overlaps)
			}
			for what, pair := range map[string][2]time.Duration{
				"wait": {got.Wait.Max, c.wait}, "hold": {got.Hold.Max, c.hold}, "hand-over": {got.HandOver.Max, c.over},
			} {
				// Three significant digits.
				if want := pair[1] * time.Millisecond; (pair[0] - want).Abs() > want/500 {
					t.Errorf("longest %s: got %v, want %v", what, pair[0], want)
				}
			}
		})
	}
}

// "A batch that one lease serves is one holder", and answers before it gives the
// lease back.
func TestTraces_Locks_batch(t *testing.T) {
	t.Parallel()
	var traces Traces
	for _, asked := range []int64{0, 1, 2} {
		one := holder(asked, 5, 11)
		one.Released = time.Time{}
		traces.add("b", true, true, one)
	}
	traces.add("next", true, true, holder(3, 12, 20))
	got := traces.Locks()
	if got.Requests != 4 || got.Overlaps != 0 || got.HandOvers != 1 || got.HandOver.Max != 2*time.Millisecond {
		t.Errorf("got %+v, want 4 requests, one hand-over of 2ms and no overlap", got)
	}
}

// Of other SKUs, waits count and hand-overs do not: they are other locks.
func TestTraces_Locks_otherSKU(t *testing.T) {
	t.Parallel()
	var traces Traces
	traces.add("a", true, true, holder(0, 1, 10))
	traces.add("b", true, false, holder(0, 2, 11))
	if got := traces.Locks(); got.Requests != 2 || got.Overlaps != 0 || len(traces.earliest) != 1 {
		t.Errorf("got %+v and %d for the picture, want two requests, one of them for it", got, len(traces.earliest))
	}
	if got := new(Traces).Locks(); got != nil {
		t.Errorf("without a lock: got %+v, want none", got)
	}
}
