package orderhttp_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order/orderhttp"
)

func TestReadyz(t *testing.T) {
	t.Parallel()
	up := func(context.Context) error { return nil }
	down := func(context.Context) error { return errors.New("connection refused by 10.0.0.7") }
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, c := range map[string]struct {
		database, redis func(context.Context) error
		failing         []any
	}{
		"all answer":     {up, up, nil},
		"database down":  {down, up, []any{"database"}},
		"redis down":     {up, down, []any{"redis"}},
		"both down":      {down, down, []any{"database", "redis"}},
		"redis is stuck": {up, hangs, []any{"redis"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(config *orderhttp.Config) {
				config.Checks = []orderhttp.Check{{Name: "database", Ping: c.database}, {Name: "redis", Ping: c.redis}}
			})
			wantStatus(t, b.call(t, http.MethodGet, "/healthz", ""), http.StatusOK)
			w := b.call(t, http.MethodGet, "/readyz", "")
			if c.failing == nil {
				wantStatus(t, w, http.StatusOK)
				return
			}
			problem := wantProblem(t, w, http.StatusServiceUnavailable, "not-ready")
			if diff := cmp.Diff(any(c.failing), problem["failing"]); diff != "" {
				t.Errorf("failing, want and got:\n%s", diff)
			}
		})
	}
}

// "Shutdown lets readiness fail", while the process still lives and sells.
func TestReadyz_draining(t *testing.T) {
	t.Parallel()
	var draining atomic.Bool
	b := setup(t, func(config *orderhttp.Config) { config.Draining = draining.Load })
	b.supply(t, "mug", 1)
	wantStatus(t, b.call(t, http.MethodGet, "/readyz", ""), http.StatusOK)
	draining.Store(true)
	wantProblem(t, b.call(t, http.MethodGet, "/readyz", ""), http.StatusServiceUnavailable, "not-ready")
	wantStatus(t, b.call(t, http.MethodGet, "/healthz", ""), http.StatusOK)
	wantStatus(t, b.buy(t, "key-1", goodOrder), http.StatusCreated)
}
