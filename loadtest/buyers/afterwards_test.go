package buyers

import (
	"net/http"
	"strings"
	"testing"

	"example.com/shop/loadtest/shopclient"
)

// An order that is sent again with the same key is the same order.
func TestRace_Run_again(t *testing.T) {
	t.Parallel()
	const crowd, units = 30, 10
	shop := newFakeShop(t, units)
	race := raceIn(crowd, shop)
	race.Again = 1
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := log.CountAgain(Same); got != units || len(shop.orders) != units {
		t.Errorf("got %d orders that came out as one, %d in the books; want %d", got, len(shop.orders), units)
	}
	if got := race.Tally.Answered(); got != crowd {
		t.Errorf("tally: got %d through, want %d, each once", got, crowd)
	}
}

// "Other means that it was not, which no shop may do."
func TestRace_Run_againAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(s *fakeShop) func(http.ResponseWriter, *http.Request, int) bool
		want   Again
		text   string
	}{
		"a second order": {func(s *fakeShop) func(http.ResponseWriter, *http.Request, int) bool {
			return func(_ http.ResponseWriter, r *http.Request, tries int) bool {
				if tries == 2 { // the shop has forgotten the key, not the order
					s.mu.Lock()
					defer s.mu.Unlock()
					key := r.Header.Get("Idempotency-Key")
					s.orders["was "+key] = s.orders[key]
					delete(s.orders, key)
				}
				return false
			}
		}, Other, "order-1 of buyer-1, whose key brought order order-2 the second time"},
		"sold out": {func(*fakeShop) func(http.ResponseWriter, *http.Request, int) bool {
			return func(w http.ResponseWriter, _ *http.Request, tries int) bool {
				if tries > 1 {
					problem(w, http.StatusConflict, "sold-out")
				}
				return tries > 1
			}
		}, Other, "sold out the second time"},
		"sold out for a moment": {func(*fakeShop) func(http.ResponseWriter, *http.Request, int) bool {
			return func(w http.ResponseWriter, _ *http.Request, tries int) bool {
				if tries == 2 { // "and asks again here; asked later, that is the replay"
					problem(w, http.StatusConflict, "sold-out")
				}
				return tries == 2
			}
		}, Same, ""},
		"no answer": {func(*fakeShop) func(http.ResponseWriter, *http.Request, int) bool {
			return func(_ http.ResponseWriter, _ *http.Request, tries int) bool {
				if tries > 1 {
					cut()
				}
				return false
			}
		}, Unanswered, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newFakeShop(t, 5)
			shop.before = c.before(shop)
			race := raceIn(1, shop)
			race.Again = 1
			log, err := race.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := log.Records[0]
			if r.Outcome != Ordered || r.Again != c.want || !strings.Contains(r.Doubled(), c.text) {
				t.Errorf("got %+v, %q; want it ordered, %v, %q", r, r.Doubled(), c.want, c.text)
			}
		})
	}
}

// Buyers cancel, others buy what came back.
func TestRace_Run_cancel(t *testing.T) {
	t.Parallel()
	const crowd, units = 40, 10
	shop := newFakeShop(t, units)
	race := raceIn(crowd, shop)
	race.Cancel = 0.5
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cancelled := log.CountCancel(Cancelled)
	if log.Count(Ordered) < units || cancelled == 0 || race.Tally.Cancelled.Load() != cancelled {
		t.Errorf("got %+v, %d cancelled, %d in the tally", count(log), cancelled, race.Tally.Cancelled.Load())
	}
	lost, err := race.Recheck(t.Context(), log)
	if err != nil || len(lost) > 0 {
		t.Errorf("recheck: got %+v, %v, want nothing lost", lost, err)
	}
	for key, o := range shop.orders { // a cancelled order that goes on living
		if o.Status == shopclient.Cancelled {
			o.Status = "pending"
			shop.orders[key] = o
		}
	}
	if lost, err := race.Recheck(t.Context(), log); err != nil || int64(len(lost)) != cancelled || lost[0].Why != "the shop shows it as pending" {
		t.Errorf("recheck: got %+v, %v, want the %d cancelled ones", lost, err, cancelled)
	}
}

// "In log, it settles what came of each Uncancelled."
func TestRace_Recheck_uncancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse func(w http.ResponseWriter) bool
		after  string // status of the order by then
		want   Cancel
	}{
		"refused":                 {func(w http.ResponseWriter) bool { problem(w, http.StatusConflict, "order-ended"); return true }, "pending", Kept},
		"broken":                  {func(w http.ResponseWriter) bool { problem(w, http.StatusInternalServerError, "internal"); return true }, "pending", Kept},
		"not told, but cancelled": {func(http.ResponseWriter) bool { cut(); return true }, shopclient.Cancelled, Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newFakeShop(t, 1)
			shop.refuseCancel = c.refuse
			race := raceIn(1, shop)
			race.Cancel = 1
			log, err := race.Run(t.Context())
			if err != nil || log.CountUncancelled() != 1 {
				t.Fatalf("got %+v, %v, want one that is not cancelled", log, err)
			}
			for key, o := range shop.orders {
				o.Status = c.after
				shop.orders[key] = o
			}
			lost, err := race.Recheck(t.Context(), log)
			if err != nil || len(lost) > 0 || log.CountCancel(c.want) != 1 {
				t.Errorf("got %+v, lost %v, %v; want one that is %v", log.Records, lost, err, c.want)
			}
		})
	}
}
