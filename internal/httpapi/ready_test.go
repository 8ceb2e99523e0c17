package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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
		optional        bool   // Redis
		want            string // answer or, of a 503, what fails
	}{
		{up, up, false, `{"status":"ready"}`}, {down, up, false, "[database]"}, {up, down, false, "[redis]"},
		{down, down, false, "[database redis]"},
		{up, up, true, `{"status":"ready"}`}, {up, down, true, `{"status":"ready","without":["redis"]}`}, {down, down, true, "[database]"},
	} {
		var draining atomic.Bool
		s := newShop(t, func(config *httpapi.Config) {
			config.Checks = []httpapi.Check{{Name: "database", Try: c.database}, {Name: "redis", Optional: c.optional, Try: c.redis}}
			config.Draining = draining.Load
		})
		wantStatus(t, s.call(t, "GET /healthz", ""), http.StatusOK)
		got := s.call(t, "GET /readyz", "")
		if strings.HasPrefix(c.want, "{") {
			wantStatus(t, got, http.StatusOK)
			if got.Body.String() != c.want+"\n" {
				t.Errorf("got %s, want %s", got.Body, c.want)
			}
		} else if p := wantProblem(t, got, "503 not-ready"); fmt.Sprint(p["failing"]) != c.want {
			t.Errorf("got %v, want failing %s", p, c.want)
		}
		s.supply(t, "mug", 1)
		draining.Store(true)
		wantProblem(t, s.call(t, "GET /readyz", ""), "503 not-ready")
		wantStatus(t, s.call(t, "GET /healthz", ""), http.StatusOK)
		s.place(t, "key-1", "1")
	}
}

// "At most one round a second. Concurrent requests share the result of a round"; the servers "have two
// seconds to answer, or half a second if the shop sells without them".
func TestReadyz_shared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		up := func(context.Context) error { return nil }
		down := func(context.Context) error { return errors.New("connection refused") }
		silent := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		database, redis := up, up
		var log bytes.Buffer
		handler := httpapi.New(httpapi.Config{
			Orders: fake{}, Store: gated{}, Log: slog.New(slog.NewTextHandler(&log, nil)), Timeout: 30 * time.Second,
			Checks: []httpapi.Check{{Name: "database", Try: func(ctx context.Context) error {
				asked++
				return database(ctx)
			}}, {Name: "redis", Optional: true, Try: func(ctx context.Context) error { return redis(ctx) }}},
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
		database = down
		want(1000, 1, http.StatusOK)
		time.Sleep(time.Second) // the bubble's clock
		want(1000, 2, http.StatusServiceUnavailable)
		time.Sleep(time.Second)
		database = silent
		began := time.Now()
		want(1000, 3, http.StatusServiceUnavailable)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v, want 2s", took)
		}
		time.Sleep(time.Second)
		database, redis = up, silent
		began = time.Now()
		want(1000, 4, http.StatusOK)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("it took %v, want half a second", took)
		}
	})
}
