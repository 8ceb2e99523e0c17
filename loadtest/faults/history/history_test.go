package history

import (
	"testing"
	"time"
)

// SoldSince returns when each shop had sold, and the shop that only replays an order has not; Gap lasts to the end, and so
// does Recovery if one has not sold. Otherwise it is the longer of that after another server's takeover and that after the
// end of the fault.
func TestHistory_SoldSince(t *testing.T) {
	t.Parallel()
	h := new(History)
	sell := func(shop int, at time.Duration, replay bool) {
		h.Add(Operation{Kind: Buy, Outcome: Placed, Replay: replay, Requests: []Request{{Shop: shop, Sent: at, Answered: at + 1}}})
	}
	sell(0, 10, false)
	sell(1, 20, false)
	sell(2, 5, false)
	sell(2, 30, true)
	if at := h.SoldSince(10, 3); at != 0 {
		t.Errorf("before all have sold: got %d", at)
	}
	sell(2, 40, false)
	if at := h.SoldSince(10, 3); at != 41 {
		t.Errorf("got %d, want 41", at)
	}
	h.Replaced, h.Healed, h.Ended = 6, 10, 100
	if h.End(3); h.Sold != 4 || h.Gap != 59 || h.Recovery != 35 {
		t.Errorf("got %d orders, a gap of %d and a recovery of %d, want 4, 59 and 35", h.Sold, h.Gap, h.Recovery)
	}
	h.Healed = 41
	if h.End(3); h.Recovery != 59 {
		t.Errorf("no sale after the fault: got a recovery of %d, want 59", h.Recovery)
	}
}
