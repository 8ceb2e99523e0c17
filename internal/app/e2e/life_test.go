package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/app"
)

// lifeCycle follows three orders from the supply to their ends, each step on another instance: one is paid, one
// cancelled, one expires and is paid for too late. What is asked again is answered again, byte for byte, by yet
// another.
func lifeCycle(t *testing.T, k kind) {
	const a, b, c, hasty = 0, 1, 2, 2
	s := k.open(t, func(i int, settings *app.Settings) {
		settings.SweepEvery = 20 * time.Millisecond
		if i == hasty { // its orders expire before long, whoever is asked about them
			settings.PayWithin = time.Second
		}
	})
	for _, sku := range []string{"mug", "shirt", "print"} {
		s.create(a, sku, 5)
	}
	supplied := s.restock(b, "mug", "truck 1", 7).want(t, http.StatusCreated)
	s.restock(c, "mug", "truck 1", 7).wantReplayOf(t, supplied)
	if got := s.levelOf(a, "mug"); got != (level{Supplied: 12, Available: 12}) {
		t.Errorf("got %+v after a restock and its replay, want it to count once", got)
	}

	cart := []string{"3 mug", "1 shirt", "2 print"}
	placed := s.buy(a, "ann", "cart 1", cart...).want(t, http.StatusCreated)
	s.buy(b, "ann", "cart 1", cart...).wantReplayOf(t, placed)
	bought := placed.order(t)
	if len(bought.Lines) != 3 || bought.Total != (money{6 * 1250, "EUR"}) || bought.Status != pending {
		t.Errorf("got %+v, want 3 lines for 75.00 EUR, pending", bought)
	}
	if got := s.get(b, "ann", placed.header.Get("Location")).want(t, http.StatusOK); got.body != placed.body {
		t.Errorf("got %s, want %s", got.body, placed.body)
	}
	if got := s.levelOf(c, "mug"); got != (level{Supplied: 12, Available: 9, Reserved: 3}) {
		t.Errorf("got %+v, want 3 of 12 reserved", got)
	}
	paid := s.end(c, "ann", bought.ID, "pay", "pay 1").want(t, http.StatusOK)
	s.end(a, "ann", bought.ID, "pay", "pay 1").wantReplayOf(t, paid)
	s.end(b, "ann", bought.ID, "cancel", "").wantRefusal(t, "paid")
	s.buy(c, "ann", "cart 1", cart...).wantReplayOf(t, placed)

	placed = s.buy(b, "ann", "cart 2", "2 mug", "1 shirt").want(t, http.StatusCreated)
	dropped := placed.order(t)
	cancelled := s.end(c, "ann", dropped.ID, "cancel", "cancel 2").want(t, http.StatusOK)
	s.end(a, "ann", dropped.ID, "cancel", "cancel 2").wantReplayOf(t, cancelled)
	s.end(b, "ann", dropped.ID, "pay", "").wantRefusal(t, "cancelled")

	placed = s.buy(hasty, "ann", "cart 3", "4 mug", "1 mug").want(t, http.StatusCreated)
	late := placed.order(t)
	if len(late.Lines) != 1 || late.Lines[0].Quantity != 5 {
		t.Errorf("got %+v, want one line of 5", late.Lines)
	}
	s.awaitStatus(a, "ann", late.ID, "expired")
	s.end(b, "ann", late.ID, "pay", "pay 3").wantRefusal(t, "expired")
	s.buy(a, "ann", "cart 3", "4 mug", "1 mug").wantReplayOf(t, placed)

	if got, want := s.levelOf(c, "mug"), (level{Supplied: 12, Available: 9, Sold: 3}); got != want || s.ledger(b, "mug") != want {
		t.Errorf("got %+v and by the ledger %+v, want %+v", got, s.ledger(b, "mug"), want)
	}
	s.wantPages(t, late.ID, dropped.ID, bought.ID)
	s.wantBooks(a)
}

// levelOf reads the level of a SKU.
func (s *shop) levelOf(on int, sku string) (l level) {
	s.t.Helper()
	s.get(on, "ann", "/v1/skus/"+sku).want(s.t, http.StatusOK).decode(s.t, &l)
	return l
}

// ledger adds up the movements of a SKU, read in pages of two from one instance after the other.
func (s *shop) ledger(on int, sku string) (sum level) {
	s.t.Helper()
	for cursor := ""; ; on++ {
		var page struct {
			Movements []level
			Next      string `json:"next_cursor"`
		}
		s.get(on, "", "/v1/skus/"+sku+"/movements?limit=2&cursor="+cursor).want(s.t, http.StatusOK).decode(s.t, &page)
		for _, m := range page.Movements {
			sum = level{sum.Supplied + m.Supplied, sum.Available + m.Available, sum.Reserved + m.Reserved, sum.Sold + m.Sold}
		}
		if cursor = page.Next; cursor == "" {
			return sum
		}
	}
}

// wantPages fails unless ann's orders come in this order, in pages of two, also when another is placed meanwhile.
func (s *shop) wantPages(t *testing.T, ids ...string) {
	t.Helper()
	var got []string
	for cursor, on := "", 0; ; on++ {
		var page struct {
			Orders []order
			Next   string `json:"next_cursor"`
		}
		s.get(on, "ann", "/v1/orders?limit=2&cursor="+cursor).want(t, http.StatusOK).decode(t, &page)
		for _, o := range page.Orders {
			got = append(got, o.ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
		s.buy(on, "ann", "between pages", "1 shirt").want(t, http.StatusCreated)
	}
	if different := cmp.Diff(ids, got); different != "" {
		t.Errorf("GET /v1/orders (-want +got):\n%s", different)
	}
}
