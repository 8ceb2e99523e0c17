package history

import (
	"fmt"
	"testing"
	"time"

	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/shopclient"
)

// SoldSince returns when each shop had sold units of Deep, and the shop that only replays an order has not; Gap lasts to the
// end, or is the longest of any SKU, or of any shop but one by redis. Recovery lasts to the end if a shop has not sold. Otherwise it is the longer of that after another server's takeover and that
// after the end of the fault.
func TestHistory_SoldSince(t *testing.T) {
	t.Parallel()
	h := &History{SKUs: SKUs{Deep: "deep", Few: "few"}}
	add := func(sku string, shop int, at time.Duration, replay bool) {
		h.Add(Operation{
			Kind: Buy, Lines: []shopclient.Line{{SKU: sku, Units: 1}}, Outcome: Placed, Replay: replay,
			Requests: []Request{{Shop: shop, Sent: at, Answered: at + 1}},
		})
	}
	sell := func(shop int, at time.Duration, replay bool) { add("deep", shop, at, replay) }
	sell(0, 10, false)
	sell(1, 20, false)
	sell(2, 5, false)
	sell(2, 30, true)
	add("few", 2, 35, false)
	if at := h.SoldSince(10); at != 0 {
		t.Errorf("before all have sold: got %d", at)
	}
	sell(2, 40, false)
	if at := h.SoldSince(10); at != 41 {
		t.Errorf("got %d, want 41", at)
	}
	h.Replaced, h.Healed, h.Ended = 6, 10, 100
	if h.End(); h.Sold != 5 || h.Gap != 59 || h.Recovery != 35 {
		t.Errorf("got %d orders, a gap of %d and a recovery of %d, want 5, 59 and 35", h.Sold, h.Gap, h.Recovery)
	}
	h.Healed = 41
	if h.End(); h.Recovery != 59 {
		t.Errorf("no sale after the fault: got a recovery of %d, want 59", h.Recovery)
	}
	h.Strategies = [system.Instances]string{"redis", "lanes", "batch"}
	for each, want := range map[string]string{"SKU": "64 of few", "shop": "79 of lanes"} {
		h.Each, h.Gap = each, 0
		h.End()
		if got := fmt.Sprintf("%d of %s", h.Gap, h.GapOf); got != want {
			t.Errorf("each %s: got a gap of %s, want %s", each, got, want)
		}
	}
}
