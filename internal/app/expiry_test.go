package app_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/logs/logbook"
)

// "Of all instances, one expires the orders that were not paid in time. When it
// shuts down, another goes on at once."
func TestShop_expires(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.Hold, s.SweepEvery = time.Second, 10*time.Millisecond
	var shops []*app.Shop
	var books []*logbook.Book
	for range 3 {
		book := &logbook.Book{}
		s.Log = slog.New(slog.NewTextHandler(book, nil))
		shops, books = append(shops, start(t, s)), append(books, book)
	}
	runners := func() (running []int) {
		for i, book := range books {
			if book.Has(`msg="job runs here" job=expiry`) {
				running = append(running, i)
			}
		}
		return running
	}
	until(t, "an instance has the job", 5*time.Second, func() bool { return len(runners()) > 0 })

	wantExpired(t, shops[2], "key-1")
	first := runners()
	if len(first) != 1 {
		t.Fatalf("instances %v run the job, want one", first)
	}
	until(t, "it says what it did", 10*time.Second, func() bool { // after the commit
		return books[first[0]].Has("msg=\"job ran\" job=expiry items=1 ")
	})
	if err := shops[first[0]].Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	until(t, "another instance has the job", 5*time.Second, func() bool { return len(runners()) == 2 })
	rest := shops[(first[0]+1)%3]
	wantExpired(t, rest, "key-2")
	wantAudit(t, rest, 2)
}

// "An instance on which a job fails, as one that has lost its own database, leaves the
// job to another at once": orders expire although it reaches Redis.
func TestShop_expires_databaseLost(t *testing.T) {
	t.Parallel()
	well, lost := embedded(t, 5), embedded(t, 1)
	lost.Redis = well.Redis // and a database of its own, to lose alone
	lost.SweepEvery, well.SweepEvery, well.Hold = 10*time.Millisecond, 10*time.Millisecond, time.Second
	first, second := &logbook.Book{}, &logbook.Book{}
	lost.Log, well.Log = slog.New(slog.NewTextHandler(first, nil)), slog.New(slog.NewTextHandler(second, nil))
	const runs = `msg="job runs here" job=expiry`
	start(t, lost)
	until(t, "the first instance has the job", patience, func() bool { return first.Has(runs) })
	shop := start(t, well)
	loseOrders(t, lost)
	until(t, "another instance has the job", patience, func() bool { return second.Has(runs) })
	wantExpired(t, shop, "key-1")
	if !first.Has(`level=ERROR msg="job ran" job=expiry items=0`) {
		t.Errorf("got log %s, want the run that failed", first)
	}
}

// wantExpired buys and does not pay.
func wantExpired(t *testing.T, shop *app.Shop, key string) {
	t.Helper()
	w, err := buy(t, shop, key)
	wantStatus(t, w, err, http.StatusCreated)
	var order struct{ ID, Status string }
	decodeAnswer(t, w, &order)
	until(t, "the order has expired", 10*time.Second, func() bool {
		w, err := call(t, http.MethodGet, shop.URL()+"/v1/orders/"+order.ID, "")
		wantStatus(t, w, err, http.StatusOK)
		decodeAnswer(t, w, &order)
		return order.Status == "expired"
	})
	w, err = call(t, http.MethodPost, shop.URL()+"/v1/orders/"+order.ID+"/pay", "")
	wantStatus(t, w, err, http.StatusConflict)
	w, err = call(t, http.MethodGet, shop.URL()+"/v1/skus/mug", "")
	wantStatus(t, w, err, http.StatusOK)
	var level struct{ Available, Reserved int64 }
	decodeAnswer(t, w, &level)
	if level.Available != 5 || level.Reserved != 0 {
		t.Errorf("got %s, want all 5 available", w.body)
	}
}

func decodeAnswer(t *testing.T, w answer, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.body), v); err != nil {
		t.Fatalf("%s: %v", w.body, err)
	}
}
