package buyers

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/shopclient"
)

// outcomes counts what became of the buyers.
type outcomes struct{ Ordered, Refused, Failed, Unknown int64 }

func count(l Log) outcomes {
	return outcomes{l.Count(Ordered), l.Count(Refused), l.Count(Failed), l.Count(Unknown)}
}

func TestRace_Run(t *testing.T) {
	t.Parallel()
	const crowd, units = 40, 10
	always := func(status int, slug string) func(http.ResponseWriter, *http.Request, int) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			problem(w, status, slug)
			return true
		}
	}
	tests := []struct {
		name          string
		before, after func(w http.ResponseWriter, r *http.Request, tries int) bool
		want          outcomes
		retries       int64
		sold          int // orders in the shop's books
	}{
		{
			name: "a shop without faults",
			want: outcomes{Ordered: units, Refused: crowd - units},
			sold: units,
		},
		{
			name: "too busy at first: asked again with the same key",
			before: func(w http.ResponseWriter, _ *http.Request, tries int) bool {
				if tries == 1 {
					w.Header().Set("Retry-After", "1") // the test's limit is shorter
					problem(w, http.StatusServiceUnavailable, "lock-wait")
				}
				return tries == 1
			},
			want:    outcomes{Ordered: units, Refused: crowd - units},
			retries: crowd + crowd - units, // who may have bought and is refused makes sure
			sold:    units,
		},
		{
			name: "connections cut after the commit: the answer is asked for again",
			after: func(_ http.ResponseWriter, _ *http.Request, tries int) bool {
				if tries == 1 {
					cut()
				}
				return false
			},
			want:    outcomes{Ordered: units, Refused: crowd - units},
			retries: crowd + crowd - units,
			sold:    units,
		},
		{
			name: "connections cut after the commit, and the next instance has not heard of it",
			after: func(w http.ResponseWriter, _ *http.Request, tries int) bool {
				switch tries {
				case 1:
					cut()
				case 2:
					problem(w, http.StatusConflict, "sold-out")
				}
				return tries == 2
			},
			want:    outcomes{Ordered: units, Refused: crowd - units},
			retries: 2 * crowd,
			sold:    units,
		},
		{
			name: "a broken answer after the commit",
			after: func(w http.ResponseWriter, _ *http.Request, tries int) bool {
				if tries == 1 {
					w.WriteHeader(http.StatusCreated)
					_, _ = w.Write([]byte(`{"id":"ord`))
				}
				return tries == 1
			},
			want:    outcomes{Ordered: units, Refused: crowd - units},
			retries: crowd + crowd - units,
			sold:    units,
		},
		{
			name:    "sold, but never told: the outcome stays unknown",
			after:   always(http.StatusInternalServerError, "internal"),
			want:    outcomes{Unknown: crowd},
			retries: crowd * 3,
			sold:    units,
		},
		{
			name:    "always too many requests: there is no order",
			before:  always(http.StatusTooManyRequests, "rate"),
			want:    outcomes{Failed: crowd},
			retries: crowd * 3,
		},
		{
			name:   "rejected for good: asked once",
			before: always(http.StatusUnprocessableEntity, "invalid-order"),
			want:   outcomes{Failed: crowd},
		},
		{
			name: "rejected, but an earlier try may have bought",
			after: func(w http.ResponseWriter, _ *http.Request, tries int) bool {
				if tries == 1 {
					cut()
				}
				problem(w, http.StatusUnauthorized, "unauthorized")
				return true
			},
			want:    outcomes{Unknown: crowd},
			retries: crowd,
			sold:    units,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shop := newFakeShop(t, units)
			shop.before, shop.after = tt.before, tt.after
			race := raceIn(crowd, shop)
			log, err := race.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, count(log)); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s\nreasons: %+v", diff, log.Reasons())
			}
			if got := log.Retries(); got != tt.retries || got != race.Tally.Retries.Load() {
				t.Errorf("retries: got %d in the log and %d in the tally, want %d", got, race.Tally.Retries.Load(), tt.retries)
			}
			if got := race.Tally.Answered(); got != crowd {
				t.Errorf("tally: got %d buyers through, want %d", got, crowd)
			}
			if got := len(shop.orders); got != tt.sold {
				t.Errorf("orders in the books: got %d, want %d", got, tt.sold)
			}
		})
	}
}

// doc.go: "Each buyer has a connection of its own, which stands before the race
// begins".
func TestRace_Run_barrier(t *testing.T) {
	t.Parallel()
	const crowd = 250
	shop := newFakeShop(t, crowd)
	log, err := raceIn(crowd, shop).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := log.Count(Ordered); got != crowd {
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

// Ready: "is called when all buyers have connected; they are let go when it returns".
func TestRace_Run_ready(t *testing.T) {
	t.Parallel()
	const crowd = 20
	shop := newFakeShop(t, crowd)
	race := raceIn(crowd, shop)
	race.Ready = func(context.Context) {
		shop.mu.Lock()
		defer shop.mu.Unlock()
		if shop.connected != crowd || shop.early >= 0 {
			t.Errorf("at the door: got %d, and %d at the first order, want %d and no order yet", shop.connected, shop.early, crowd)
		}
	}
	log, err := race.Run(t.Context())
	if err != nil || log.Count(Ordered) != crowd {
		t.Errorf("orders: got %d, %v, want %d", log.Count(Ordered), err, crowd)
	}
}

// doc.go: "Every latency counts from the common start, also that of a buyer whom
// the shop got round to last".
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
	log, err := raceIn(crowd, shop).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := log.Latencies()
	if got.Max < crowd*each || got.Max > log.Took {
		t.Errorf("longest wait: got %v, want at least %v and at most the race's %v", got.Max, crowd*each, log.Took)
	}
	if got.P50 < crowd/2*each {
		t.Errorf("median wait: got %v, want at least %v", got.P50, crowd/2*each)
	}
}

func TestRace_Run_slow_answer(t *testing.T) {
	t.Parallel()
	shop := newFakeShop(t, 1)
	shop.after = func(_ http.ResponseWriter, r *http.Request, tries int) bool {
		if tries == 1 {
			<-r.Context().Done() // until the buyer hangs up
		}
		return false
	}
	race := raceIn(1, shop)
	race.RequestTimeout = time.Second
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := log.Records[0]
	if got.Tries < 2 { // more on a machine that is too busy to answer in time
		t.Errorf("%d tries, want another one after the first", got.Tries)
	}
	want := Record{Buyer: "buyer-1", Outcome: Ordered, OrderID: "order-1", Tries: got.Tries, Replayed: true, Latency: got.Latency, Ended: got.Ended,
		Lines: []shopclient.Line{{SKU: "thing", Units: 1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
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
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outcomes{Unknown: crowd}, count(log)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Reason{{"no answer in time", crowd}}, log.Reasons()); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// Who may have bought, is told that nothing is left, and has no time to make sure
// does not know.
func TestRace_Run_no_time_to_make_sure(t *testing.T) {
	t.Parallel()
	shop := newFakeShop(t, 1)
	shop.after = func(w http.ResponseWriter, _ *http.Request, tries int) bool {
		if tries == 1 {
			cut()
		}
		problem(w, http.StatusConflict, "sold-out")
		return true
	}
	race := raceIn(1, shop)
	race.Timeout, race.Retry.Doubt = time.Second, time.Hour
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Reason{{"no answer in time", 1}}, log.Reasons()); diff != "" || log.Count(Unknown) != 1 {
		t.Errorf("got %+v, reasons (-want +got):\n%s", count(log), diff)
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

func TestRace_Run_nobody_home(t *testing.T) {
	t.Parallel()
	shop := newFakeShop(t, 1)
	race := raceIn(20, shop)
	shop.Close()
	if _, err := race.Run(t.Context()); err == nil {
		t.Error("error: got nil, want that buyers cannot connect")
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
	log, err := raceIn(crowd, dying, other).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := log.Count(Ordered); got != crowd {
		t.Errorf("orders: got %d, want %d; reasons: %+v", got, crowd, log.Reasons())
	}
}
