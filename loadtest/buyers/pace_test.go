package buyers

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// "It is closed: each buyer orders again as soon as there is an answer to the
// order before."
func TestRace_Run_requests(t *testing.T) {
	t.Parallel()
	const crowd, units, requests = 5, 40, 100
	shop := newFakeShop(t, units)
	race := raceIn(crowd, shop)
	race.Pace = Pace{Requests: requests}
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outcomes{Ordered: units, Refused: requests - units}, count(log)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s\nreasons: %+v", diff, log.Reasons())
	}
	if got := len(shop.tries); got != requests {
		t.Errorf("keys: got %d, want one for each of %d orders", got, requests)
	}
	if shop.opened != crowd {
		t.Errorf("connections opened: got %d, want one for each of %d buyers", shop.opened, crowd)
	}
	if got := race.Tally.Done(); got != 1 || race.Tally.Orders() != requests {
		t.Errorf("done: got %v of %d orders, want all of it", got, race.Tally.Orders())
	}
	for _, r := range log.Records {
		if r.Latency > r.Ended {
			t.Fatalf("waited %v of an order that was answered after %v, want from when it was due", r.Latency, r.Ended)
		}
	}
}

// "Orders are sent for so long."
func TestRace_Run_duration(t *testing.T) {
	t.Parallel()
	shop := newFakeShop(t, 1)
	race := raceIn(3, shop)
	race.Pace = Pace{Duration: 50 * time.Millisecond}
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if log.Took < race.Pace.Duration || log.Count(Ordered) != 1 || log.Count(Unknown)+log.Count(Failed) > 0 {
		t.Errorf("got %+v in %v, want one order, refusals and %v at least", count(log), log.Took, race.Pace.Duration)
	}
}

// "With a Rate the load is open: orders are due at random moments that do not
// depend on each other, whatever the shop does."
func TestRace_Run_rate(t *testing.T) {
	t.Parallel()
	const orders = 200
	shop := newFakeShop(t, orders)
	race := raceIn(orders, shop)
	race.Pace = Pace{Rate: 2000, Requests: orders}
	began := time.Now()
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outcomes{Ordered: orders}, count(log)); diff != "" || log.Unsent > 0 {
		t.Errorf("outcomes (-want +got):\n%s\n%d unsent, reasons: %+v", diff, log.Unsent, log.Reasons())
	}
	// The last of 200 is due after 100 ms on average. These arrivals are always the same.
	if took := time.Since(began); took < 70*time.Millisecond {
		t.Errorf("took %v, want as long as the rate asks for", took)
	}
}

// "One that finds all buyers waiting for an answer is not sent: it is counted", and
// waits count "from the moment at which the order was due".
func TestRace_Run_rateTooHigh(t *testing.T) {
	t.Parallel()
	const crowd, orders = 4, 50
	shop := newFakeShop(t, orders)
	race := raceIn(crowd, shop)
	race.Pace = Pace{Rate: 5000, Requests: orders}
	var once sync.Once
	shop.before = func(http.ResponseWriter, *http.Request, int) bool {
		once.Do(func() {
			// Until all others were due, or this is broken.
			for end := time.Now().Add(time.Minute); race.Tally.Errors.Load() < 10 && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		})
		return false
	}
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if log.Unsent < 10 || log.Unsent+int64(len(log.Records)) != orders || log.Count(Ordered) != int64(len(log.Records)) {
		t.Errorf("got %d unsent and %+v, want %d orders in all and 10 of them unsent at least", log.Unsent, count(log), orders)
	}
	if got := race.Tally.Answered(); got != orders {
		t.Errorf("tally: got %d orders through, want %d", got, orders)
	}
}
