package main

import (
	"net/http"
	"testing"

	"example.com/shop/internal/app"
)

// "20 if not given; none with --lab."
func TestLimitFlags(t *testing.T) {
	t.Parallel()
	none, fifty := 0, 50
	for name, c := range map[string]struct {
		typed *int
		lab   bool
		want  int
	}{
		"not given":      {nil, false, 20},
		"not given, lab": {nil, true, 0},
		"none":           {&none, false, 0},
		"given":          {&fifty, false, 50},
		"given, lab":     {&fifty, true, 50},
	} {
		s := app.Settings{Lab: c.lab}
		limitFlags{RateLimit: c.typed, RateLimitFails: "closed", MaxInFlight: 7}.limit(&s)
		if s.RateLimit != c.want || !s.RateLimitFailsClosed || s.MaxInFlight != 7 {
			t.Errorf("%s: got %d, closed %v, in flight %d, want %d, closed, 7", name, s.RateLimit, s.RateLimitFailsClosed, s.MaxInFlight, c.want)
		}
	}
}

// "More get a 429."
func TestServe_rateLimit(t *testing.T) {
	t.Parallel()
	s := startShop(t, append(withSecret(t), "--rate-limit", "1")...)
	ann := as(t, "ann")
	for range 1000 {
		w := buy(s.url, "key-1", ann)
		if w.status == http.StatusCreated {
			continue
		}
		w.want(t, http.StatusTooManyRequests)
		if after := w.header.Get("Retry-After"); after != "1" {
			t.Errorf("got Retry-After %q, want 1", after)
		}
		return
	}
	t.Error("got 1000 answers and no 429")
}

// "Without it both are in this process", and the log says so.
func TestServe_locksInProcess(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	until(t, "the log says where the locks are", patience, func() bool { return s.stderr.Has("locks=process") })
}

func TestServe_limitsRefused(t *testing.T) {
	t.Parallel()
	shop(t, "serve", "--rate-limit=-1").want(t, exitUsage, "rate-limit: -1: want 0 to")
	shop(t, "serve", "--max-open-orders=-1").want(t, exitUsage, "max-open-orders: -1: want 0 to")
	shop(t, "serve", "--max-in-flight", "0").want(t, exitUsage, "max-in-flight: 0: want 1 to")
	shop(t, "serve", "--rate-limit-fails", "maybe").want(t, exitUsage, "rate-limit-fails")
}
