package e2e_test

import (
	"net/http"

	"github.com/google/go-cmp/cmp"
)

// wantBooks fails unless the shop's books, as this instance shows them, say what buyers and operator were told, and the
// audit is clean. Nothing may be going on any more.
func (s *shop) wantBooks(on int) {
	s.t.Helper()
	s.book.mu.Lock() // buyers are done
	defer s.book.mu.Unlock()
	want, missing := map[string]level{}, len(s.book.orders)
	for sku, units := range s.book.supplied {
		want[sku] = level{Supplied: units, Available: units}
	}
	for buyer := range s.book.buyers {
		for _, kept := range s.ordersOf(on, buyer) {
			told, known := s.book.orders[kept.ID]
			switch different := diff(told, kept); {
			case !known:
				s.t.Errorf("order %+v: no buyer was told of it", kept)
			case different != "":
				s.t.Errorf("order %s (-told +kept):\n%s", kept.ID, different)
			case told.Status != kept.Status && told.Status != pending:
				s.t.Errorf("order %s is %s, and its buyer was told %s", kept.ID, kept.Status, told.Status)
			default:
				missing--
			}
			for _, line := range kept.Lines {
				want[line.SKU] = want[line.SKU].after(line.Quantity, kept.Status)
			}
		}
	}
	if missing != 0 {
		s.t.Errorf("%d of %d acknowledged orders are not as their buyers were told", missing, len(s.book.orders))
	}
	s.wantAudit(on, want)
}

// after is the level once an order for so many units is in this state.
func (l level) after(units int64, state string) level {
	switch state {
	case pending:
		l.Available, l.Reserved = l.Available-units, l.Reserved+units
	case "paid":
		l.Available, l.Sold = l.Available-units, l.Sold+units
	}
	return l
}

// ordersOf reads all orders of a buyer, page by page.
func (s *shop) ordersOf(on int, buyer string) (all []order) {
	s.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Orders []order
			Next   string `json:"next_cursor"`
		}
		a := s.ask(request{on: on, buyer: buyer, method: http.MethodGet, path: "/v1/orders?limit=40&cursor=" + cursor})
		a.want(s.t, http.StatusOK).decode(s.t, &page)
		all = append(all, page.Orders...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// wantAudit fails unless the audit has nothing to say and sees these levels.
func (s *shop) wantAudit(on int, want map[string]level) {
	s.t.Helper()
	var report struct {
		OK   bool
		SKUs []struct {
			SKU string
			level
			Oversold int64
		}
	}
	a := s.ask(request{on: on, method: http.MethodGet, path: "/v1/audit"}).want(s.t, http.StatusOK)
	a.decode(s.t, &report)
	got := map[string]level{}
	for _, account := range report.SKUs {
		got[account.SKU] = account.level
		if account.Oversold != 0 {
			s.t.Errorf("%s: oversold by %d", account.SKU, account.Oversold)
		}
	}
	if !report.OK {
		s.t.Errorf("got audit %s, want it clean", a.body)
	}
	if different := cmp.Diff(want, got); different != "" {
		s.t.Errorf("levels (-as buyers and operator were told +kept):\n%s", different)
	}
}
