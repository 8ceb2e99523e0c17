package orderhttp_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// threeShops returns three instances of one shop, each with its own connections
// and locker. Orders expire after hold; 0 means the default.
func threeShops(t *testing.T, kind storetest.Kind, hold time.Duration) []*bundle {
	t.Helper()
	database, shared := kind.New(t, ""), lock.NewMemory()
	shops := []*bundle{setupOn(t, database.Migrated(t), shared, hold, nil)}
	for range 2 {
		shops = append(shops, setupOn(t, database.Open(t), shared, hold, nil))
	}
	return shops
}

const crowd = 50

// fromAll sends the same request many times at the same moment, to all instances
// in turn, and those again that were told to. It returns the one answer that is
// no replay; all others must be the same.
func fromAll(t *testing.T, shops []*bundle, send func(b *bundle) *httptest.ResponseRecorder) (first *httptest.ResponseRecorder) {
	t.Helper()
	answers := make([]*httptest.ResponseRecorder, crowd)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-start
			b := shops[i%len(shops)]
			w := send(b)
			for end := time.Now().Add(30 * time.Second); w.Code == http.StatusConflict && time.Now().Before(end); w = send(b) {
				wantProblem(t, w, http.StatusConflict, "in-progress")
			}
			answers[i] = w
		})
	}
	close(start)
	all.Wait()
	for _, w := range answers {
		if w.Header().Get("Idempotent-Replayed") == "" {
			if first != nil {
				t.Fatalf("two that are no replay: %d %s and %d %s", first.Code, first.Body, w.Code, w.Body)
			}
			first = w
		}
	}
	if first == nil {
		t.Fatalf("all are replays: %d %s", answers[0].Code, answers[0].Body)
	}
	for _, w := range answers {
		if w != first {
			wantStatus(t, w, first.Code)
			wantReplayOf(t, first, w)
		}
	}
	return first
}

// "A repeat has the status, the Location and, byte for byte, the body of the first
// answer, on every instance and whatever became of the order meanwhile": 50 at
// once place one order, pay it and cancel another; then the price changes.
func TestReplay_atOnce(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		shops := threeShops(t, kind, 0)
		b := shops[0]
		b.supply(t, "mug", 100)
		for _, how := range []string{"pay", "cancel"} {
			placing := func(b *bundle) *httptest.ResponseRecorder { return b.buy(t, "place to "+how, line("2")) }
			placed := fromAll(t, shops, placing)
			wantStatus(t, placed, http.StatusCreated)
			path := placed.Header().Get("Location")
			ending := func(b *bundle) *httptest.ResponseRecorder {
				return b.call(t, http.MethodPost, path+"/"+how, "", "Idempotency-Key: "+how)
			}
			ended := fromAll(t, shops, ending)
			wantLife(t, ended, map[string]string{"pay": "paid", "cancel": "cancelled"}[how])
			if err := b.db.Exec("UPDATE skus SET price_minor = price_minor + 1").Error; err != nil {
				t.Fatal(err)
			}
			for _, b := range shops {
				again := placing(b)
				wantStatus(t, again, placed.Code)
				wantReplayOf(t, placed, again)
				again = ending(b)
				wantStatus(t, again, ended.Code)
				wantReplayOf(t, ended, again)
			}
		}
		sku, err := b.stock.SKU(t.Context(), "mug")
		if err != nil || sku.Level.Available != 98 || sku.Level.Sold != 2 {
			t.Errorf("got %+v, %v, want one order of 2 sold and one given back", sku.Level, err)
		}
		b.wantClean(t)
	})
}

// The same of an order that expired, and of a time that has more digits than a
// database keeps.
func TestReplay_expired(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		shops := threeShops(t, kind, time.Millisecond+time.Nanosecond)
		b := shops[0]
		b.supply(t, "mug", 5)
		placed := b.buy(t, "key-1", line("2"))
		wantStatus(t, placed, http.StatusCreated)
		var order lived
		unmarshal(t, placed, &order)
		for now := (time.Time{}); now.Before(order.ExpiresAt); {
			var err error
			if now, err = store.Now(t.Context(), b.db); err != nil {
				t.Fatal(err)
			}
		}
		pay := func(b *bundle) *httptest.ResponseRecorder {
			return b.call(t, http.MethodPost, placed.Header().Get("Location")+"/pay", "", "Idempotency-Key: key-2")
		}
		for _, b := range shops {
			wantRefusal(t, pay(b), "order-expired", "expired")
			again := b.buy(t, "key-1", line("2"))
			wantStatus(t, again, placed.Code)
			wantReplayOf(t, placed, again)
		}
		b.wantUntouched(t, "mug", 5)
	})
}
