package main

import (
	"fmt"
	"net/http"
	"testing"

	"example.com/shop/internal/app"
)

// "0 for no limit."
func TestServe_maxOpenOrders(t *testing.T) {
	t.Parallel()
	for open, args := range map[int][]string{10: nil, 2: {"--max-open-orders", "2"}, 11: {"--max-open-orders", "0"}} {
		t.Run(fmt.Sprint(open, args), func(t *testing.T) {
			t.Parallel()
			s := startShop(t, args...)
			ann := s.shown(t, "TOKEN=")
			for i := range open {
				buy(s.url, fmt.Sprint("key-", i), ann).Want(t, http.StatusCreated)
			}
			if open < 11 {
				buy(s.url, "one-more", ann).Want(t, http.StatusTooManyRequests)
			}
		})
	}
}

// A shop enforces the limit per buyer that seed has stored in its data.
func TestSeed_limitPerBuyer(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	shop(t, "seed", "--data", data, "--sku", "demo-mug", "--units", "5", "--limit-per-buyer", "1").
		want(t, app.ExitDone, "demo-mug: 5 units at 1000 minor units of EUR, 1 for each buyer\n")
	s := startShop(t, "--data", data)
	ann := s.shown(t, "TOKEN=")
	buy(s.url, "key-1", ann).Want(t, http.StatusCreated)
	buy(s.url, "key-2", ann).Want(t, http.StatusConflict)
}

// "Further requests get a 429."
func TestServe_rateLimit(t *testing.T) {
	t.Parallel()
	s := startShop(t, append(withSecret(t), "--rate-limit", "1")...)
	ann := as(t, "ann")
	for range 1000 {
		w := buy(s.url, "key-1", ann)
		if w.Status == http.StatusCreated {
			continue
		}
		w.Want(t, http.StatusTooManyRequests)
		if after := w.Header.Get("Retry-After"); after != "1" {
			t.Errorf("got Retry-After %q, want 1", after)
		}
		return
	}
	t.Error("got 1000 answers and no 429")
}
