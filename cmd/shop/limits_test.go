package main

import (
	"fmt"
	"net/http"
	"testing"

	"example.com/shop/internal/app"
)

// "0 for no limit." "--rate-limit is 20 and --max-open-orders 10 if not given."
func TestServe_maxOpenOrders(t *testing.T) {
	t.Parallel()
	const more = 11
	for name, c := range map[string]struct {
		args []string
		open int
	}{
		"not given": {nil, 10},
		"2":         {[]string{"--max-open-orders", "2"}, 2},
		"0":         {[]string{"--max-open-orders", "0"}, more},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startShop(t, c.args...)
			ann := s.shown(t, "TOKEN=")
			for i := range more {
				got := buy(s.url, fmt.Sprint("key-", i), ann)
				if i < c.open {
					got.Want(t, http.StatusCreated)
					continue
				}
				got.Want(t, http.StatusTooManyRequests)
				if got.Header.Get("Retry-After") == "" {
					t.Error("got no Retry-After, want one")
				}
			}
		})
	}
}

// What seed limits, a shop on the same data does.
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

// "More get a 429."
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
