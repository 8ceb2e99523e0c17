package crowd

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"example.com/shop/loadtest/shopclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each buyer's tries follow a script, whose last line is for all further tries: sell, or X, or both,
// where X is an answer that is not an order.
func TestRace_Run(t *testing.T) {
	t.Parallel()
	const crowd, units = 40, 10
	reply := func(w http.ResponseWriter, how string) bool {
		switch how {
		case "cut":
			cut()
		case "break off":
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"id":"ord`))
		default:
			status, _ := strconv.Atoi(how)
			w.Header().Set("Retry-After", map[string]string{"503": "1"}[how]) // the test's limit is shorter
			problem(w, status, map[string]string{"409": "sold-out"}[how])
		}
		return true
	}
	fine := outcomes{Ordered: units, Refused: crowd - units}
	for name, c := range map[string]struct {
		script  []string
		want    outcomes
		retries int64
		sold    int // orders in the shop's books
	}{
		"a shop without faults":                 {[]string{"sell"}, fine, 0, units},
		"too busy at first":                     {[]string{"503", "sell"}, fine, crowd, units},
		"cut after the commit":                  {[]string{"sell, cut", "sell"}, fine, crowd, units},
		"a broken answer after the commit":      {[]string{"sell, break off", "sell"}, fine, crowd, units},
		"sold, but never told":                  {[]string{"sell, 500"}, outcomes{Unknown: crowd}, 3 * crowd, units},
		"always too many requests":              {[]string{"429"}, outcomes{Failed: crowd}, 3 * crowd, 0},
		"rejected for good: asked once":         {[]string{"422"}, outcomes{Failed: crowd}, 0, 0},
		"rejected, but an earlier try may have": {[]string{"sell, cut", "401"}, outcomes{Unknown: crowd}, crowd, units},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newFakeShop(t, units)
			turn := func(tries int) (sell bool, how string) {
				line := c.script[min(tries, len(c.script))-1]
				rest, sell := strings.CutPrefix(line, "sell")
				return sell, strings.TrimPrefix(rest, ", ")
			}
			shop.before = func(w http.ResponseWriter, _ *http.Request, tries int) bool {
				sell, how := turn(tries)
				return !sell && reply(w, how)
			}
			shop.after = func(w http.ResponseWriter, _ *http.Request, tries int) bool {
				_, how := turn(tries)
				return how != "" && reply(w, how)
			}
			race := raceIn(crowd, shop)
			log := hold(t, race)
			if diff := cmp.Diff(c.want, count(log)); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s\n%v", diff, log.Notes())
			}
			if got := log.Summary().Retries; got != c.retries {
				t.Errorf("retries: got %d, want %d", got, c.retries)
			}
			answered := race.Tally.Ordered.Load() + race.Tally.Refused.Load() + race.Tally.Errors.Load()
			if answered != crowd || len(shop.orders) != c.sold {
				t.Errorf("got %d buyers through and %d orders, want %d and %d", answered, len(shop.orders), crowd, c.sold)
			}
		})
	}
}

// doc.go: "Each buyer has a connection of its own, which is opened before the race begins".
func TestRace_Run_barrier(t *testing.T) {
	t.Parallel()
	const crowd = 250
	shop := newFakeShop(t, crowd)
	log := hold(t, raceIn(crowd, shop))
	if got := count(log)[Ordered]; got != crowd {
		t.Errorf("orders: got %d, want %d", got, crowd)
	}
	shop.mu.Lock()
	defer shop.mu.Unlock()
	if shop.early != crowd {
		t.Errorf("buyers at the door when the first order came: got %d, want %d", shop.early, crowd)
	}
	if shop.opened != crowd {
		t.Errorf("connections opened: got %d, want one for each of %d buyers", shop.opened, crowd)
	}
}

// "A latency counts from the moment at which an order was due. The first order of a buyer is due at the common start".
func TestRace_Run_latency(t *testing.T) {
	t.Parallel()
	const crowd, each = 10, 5 * time.Millisecond
	shop := newFakeShop(t, crowd)
	one := make(chan struct{}, 1)
	shop.before = func(http.ResponseWriter, *http.Request, int) bool {
		one <- struct{}{}
		time.Sleep(each) // the shop's work, one buyer after the other
		<-one
		return false
	}
	log := hold(t, raceIn(crowd, shop))
	got := log.Summary().LatencyMS
	if got.Max < Milliseconds(crowd*each) || got.Max > Milliseconds(log.Took) {
		t.Errorf("longest wait: got %v ms, want at least %v and at most the race's %v", got.Max, crowd*each, log.Took)
	}
	if got.P50 < Milliseconds(crowd/2*each) {
		t.Errorf("median wait: got %v ms, want at least %v", got.P50, crowd/2*each)
	}
}

func TestRace_Run_no_answer_in_time(t *testing.T) {
	t.Parallel()
	const crowd = 5
	shop := newFakeShop(t, crowd)
	shop.before = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		<-r.Context().Done()
		return true
	}
	race := raceIn(crowd, shop)
	race.Timeout = 50 * time.Millisecond
	log := hold(t, race)
	if diff := cmp.Diff(outcomes{Unknown: crowd}, count(log)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"5 without a definite answer: no answer in time"}, log.Notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestRace_Run_stopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	shop := newFakeShop(t, 1)
	shop.before = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		cancel(enough)
		<-r.Context().Done()
		return true
	}
	if _, err := raceIn(20, shop).Run(ctx); !errors.Is(err, enough) {
		t.Errorf("error: got %v, want %v", err, enough)
	}
}

// Asking again goes to the next shop.
func TestRace_Run_shop_dies(t *testing.T) {
	t.Parallel()
	const crowd = 20
	dying, other := newFakeShop(t, 0), newFakeShop(t, crowd)
	dying.before = func(http.ResponseWriter, *http.Request, int) bool {
		cut()
		return true
	}
	log := hold(t, raceIn(crowd, dying, other))
	if got := count(log)[Ordered]; got != crowd {
		t.Errorf("orders: got %d, want %d; reasons: %+v", got, crowd, log.Notes())
	}
}

// "Each later order is due when the one before was answered".
func TestRace_Run_duration(t *testing.T) {
	t.Parallel()
	const crowd, units, length = 5, 6, 500 * time.Millisecond
	shop := newFakeShop(t, units)
	race := raceIn(crowd, shop)
	race.Duration = length
	log := hold(t, race)
	got := count(log)
	if orders := len(log.Records); got[Ordered] != units || got[Ordered]+got[Refused] != orders || orders <= units || log.Took < length {
		t.Errorf("got %+v in %v, want %d units sold and buyers who go on for %v; reasons: %+v", got, log.Took, units, length, log.Notes())
	}
	// net/http drops a connection whose answer was read before the writer of the request was scheduled.
	if len(shop.tries) != len(log.Records) || shop.opened > 2*crowd {
		t.Errorf("got %d keys and %d connections, want one for each of %d orders, and one for each of %d buyers but for some",
			len(shop.tries), shop.opened, len(log.Records), crowd)
	}
	last := map[string]time.Duration{} // when the buyer's order before was answered
	for _, r := range log.Records {
		if due := r.Ended - r.Latency; due < last[r.Buyer] || last[r.Buyer] == 0 && due != 0 {
			t.Fatalf("%s: an order was due after %v, want the answer to the order before, after %v", r.Buyer, due, last[r.Buyer])
		}
		last[r.Buyer] = r.Ended
	}
}

// "The warm-up comes first: until each buyer has had an answer, and then a fifth of Duration."
func TestRace_Run_warm(t *testing.T) {
	t.Parallel()
	const crowd, slow = 5, 30 * time.Millisecond
	for _, length := range []time.Duration{slow, 10 * slow} {
		shop := newFakeShop(t, 1_000_000)
		var first atomic.Bool
		shop.before = func(http.ResponseWriter, *http.Request, int) bool {
			if first.CompareAndSwap(false, true) {
				time.Sleep(slow)
			}
			return false
		}
		race := raceIn(crowd, shop)
		race.Duration = length
		log := hold(t, race)
		if warm := max(slow, length/5); log.Began < warm || log.Took < log.Began+length {
			t.Errorf("%v: began after %v of %v, want %v at least, and then %v", length, log.Began, log.Took, warm, length)
		}
	}
}

// Buyers pay and cancel these shares of their orders.
func TestRace_Run_ends(t *testing.T) {
	t.Parallel()
	const crowd = 500
	shop := newFakeShop(t, crowd)
	race := raceIn(crowd, shop)
	race.Pay, race.Cancel = 0.6, 0.1
	log := hold(t, race)
	statuses := map[string]int64{}
	for _, o := range shop.orders {
		statuses[o.Status]++
	}
	for status, share := range map[string]float64{"pay": 0.6, "cancel": 0.1, "pending": 0.3} {
		if got := float64(statuses[status]) / crowd; got < share-0.05 || got > share+0.05 {
			t.Errorf("%s: got %.2f of all, want %.2f", status, got, share)
		}
	}
	for _, r := range log.Records {
		if r.Cancelled {
			statuses["cancel"]--
		}
	}
	if statuses["cancel"] != 0 || log.Summary().Errors > 0 {
		t.Errorf("got %+v, and %d cancelled orders that are not on record as such", log.Summary(), statuses["cancel"])
	}
}

// An order that cannot be paid is acknowledged, and an error.
func TestRace_Run_ends_in_vain(t *testing.T) {
	t.Parallel()
	shop := newFakeShop(t, 1)
	shop.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if strings.HasSuffix(r.URL.Path, "/pay") {
			problem(w, http.StatusConflict, "order-ended")
			return true
		}
		return false
	}
	race := raceIn(1, shop)
	race.Pay = 1
	log := hold(t, race)
	if got := log.Summary(); got.Acknowledged != 1 || got.Errors != 1 || got.Unknown != 0 {
		t.Errorf("got %+v, want an order, acknowledged, and an error", got)
	}
	if diff := cmp.Diff([]string{"1 without a definite answer: pay: 409 order-ended"}, log.Notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// Recheck finds an order that the shop has lost or changed, and none else.
func TestRace_Recheck(t *testing.T) {
	t.Parallel()
	changed := func(change func(*shopclient.Order)) func(*fakeShop, string, shopclient.Order) {
		return func(s *fakeShop, key string, o shopclient.Order) {
			change(&o)
			s.orders[key] = o
		}
	}
	for name, c := range map[string]struct {
		change func(s *fakeShop, key string, o shopclient.Order) // of order-7
		want   string                                            // what is found, of order-7 alone
	}{
		"all are there":       {func(*fakeShop, string, shopclient.Order) {}, ""},
		"one is lost":         {func(s *fakeShop, key string, _ shopclient.Order) { delete(s.orders, key) }, "does not know it"},
		"it is another's now": {func(s *fakeShop, _ string, o shopclient.Order) { s.owners[o.ID] = "another" }, "does not know it"},
		"it was cancelled":    {changed(func(o *shopclient.Order) { o.Status = shopclient.Cancelled }), "the shop shows"},
		"it has more units":   {changed(func(o *shopclient.Order) { o.Lines = []shopclient.Line{{SKU: "thing", Units: 2}} }), "the shop shows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newFakeShop(t, 40)
			race := raceIn(50, shop)
			log := hold(t, race)
			for key, o := range shop.orders {
				if o.ID == "order-7" {
					c.change(shop, key, o)
				}
			}
			if err := race.Recheck(t.Context(), log); err != nil {
				t.Fatal(err)
			}
			for _, r := range log.Records {
				if of7 := r.OrderID == "order-7"; of7 && !strings.Contains(r.Lost, c.want) || (!of7 || c.want == "") && r.Lost != "" {
					t.Errorf("order %q: got %q, want of order-7 alone %q", r.OrderID, r.Lost, c.want)
				}
			}
		})
	}
}
