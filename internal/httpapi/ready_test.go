package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/httpapi"
)

// readyz of a shop whose servers answer or not, and which drains, while the process lives and sells.
func TestReadyz(t *testing.T) {
	t.Parallel()
	up := func(context.Context) error { return nil }
	down := func(context.Context) error { return errors.New("connection refused by 10.0.0.7") }
	for _, c := range []struct {
		database, redis func(context.Context) error
		failing         string
	}{{up, up, ""}, {down, up, "[database]"}, {up, down, "[redis]"}, {down, down, "[database redis]"}} {
		var draining atomic.Bool
		s := newShop(t, func(config *httpapi.Config) {
			config.Checks = []httpapi.Check{{Name: "database", Try: c.database}, {Name: "redis", Try: c.redis}}
			config.Draining = draining.Load
		})
		wantStatus(t, s.call(t, "GET /healthz", ""), http.StatusOK)
		w := s.call(t, "GET /readyz", "")
		if c.failing == "" {
			wantStatus(t, w, http.StatusOK)
		} else if p := wantProblem(t, w, "503 not-ready"); fmt.Sprint(p["failing"]) != c.failing {
			t.Errorf("got %v, want failing %s", p, c.failing)
		}
		s.supply(t, "mug", 1)
		draining.Store(true)
		wantProblem(t, s.call(t, "GET /readyz", ""), "503 not-ready")
		wantStatus(t, s.call(t, "GET /healthz", ""), http.StatusOK)
		s.place(t, "key-1", "1")
	}
}

// "In one round at a time and one round in a second, whose result concurrent requests share", and a round ends after
// two seconds.
func TestReadyz_shared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var answer error
		var hang bool
		var log bytes.Buffer
		handler := httpapi.New(httpapi.Config{
			Orders: fake{}, Stock: gated{}, Log: slog.New(slog.NewTextHandler(&log, nil)), Timeout: 30 * time.Second,
			Checks: []httpapi.Check{{Name: "database", Try: func(ctx context.Context) error {
				asked++
				if hang {
					<-ctx.Done()
					return ctx.Err()
				}
				return answer
			}}},
		})
		want := func(askers, rounds, status int) {
			t.Helper()
			var wait sync.WaitGroup
			for range askers {
				wait.Go(func() {
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
					if w.Code != status {
						t.Errorf("got status %d, want %d", w.Code, status)
					}
				})
			}
			wait.Wait()
			if asked != rounds || log.Len() > 0 {
				t.Errorf("got %d rounds and log %s, want %d and no line", asked, &log, rounds)
			}
		}
		want(1000, 1, http.StatusOK)
		answer = errors.New("connection refused")
		want(1000, 1, http.StatusOK)
		time.Sleep(time.Second) // the bubble's clock
		want(1000, 2, http.StatusServiceUnavailable)
		time.Sleep(time.Second)
		hang = true
		began := time.Now()
		want(1000, 3, http.StatusServiceUnavailable)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v, want 2s", took)
		}
	})
}
