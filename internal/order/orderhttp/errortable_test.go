package orderhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/tape"
)

// broken is an order service that fails in one way.
type broken struct{ err error }

func (b broken) Place(context.Context, order.Request) (order.Order, bool, error) {
	return order.Order{}, false, b.err
}

func (b broken) SoldOut(order.Request) bool { return false }

func (b broken) Pay(context.Context, order.EndRequest) (order.Ended, error) {
	return order.Ended{}, b.err
}

func (b broken) Cancel(context.Context, order.EndRequest) (order.Ended, error) {
	return order.Ended{}, b.err
}

func (b broken) Order(context.Context, string, string) (order.Order, error) {
	return order.Order{}, b.err
}

func (b broken) Orders(context.Context, string, string, int) ([]order.Order, error) {
	return nil, b.err
}

// Every error that the service documents, as its row of the table answers it.
func TestErrorTable_rows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		slug   string
		again  bool // retry_safe, and Retry-After unless it is a 500
	}{
		{tape.ErrInvalid, 400, "malformed", false},
		{order.ErrKeyMissing, 400, "key-missing", false},
		{order.ErrKeyInvalid, 400, "key-invalid", false},
		{order.ErrUnknownStrategy, 400, "unknown-strategy", false},
		{order.ErrMissingStrategy, 400, "missing-strategy", false},
		{order.ErrInvalid, 422, "invalid-order", false},
		{order.ErrBuyer, 422, "invalid-order", false},
		{order.ErrTooManyOpen, 429, "too-many-open", true},
		{order.ErrPurchaseLimit, 409, "purchase-limit", false},
		{order.ErrKeyReused, 422, "key-reused", false},
		{order.ErrInProgress, 409, "in-progress", true},
		{order.ErrUnsettled, 503, "unknown-outcome", true},
		{&order.StateError{Status: order.Expired}, 409, "order-expired", false},
		{&order.StateError{Status: order.Paid}, 409, "order-ended", false},
		{order.ErrNotFound, 404, "order-not-found", false},
		{order.ErrTooLate, 503, "too-late", true},
		{order.ErrBusy, 503, "busy", true},
		{stock.ErrBusy, 503, "busy", true},
		{order.ErrUnknownOutcome, 503, "unknown-outcome", true},
		{stock.ErrUnknownSKU, 422, "unknown-sku", false},
		{stock.ErrSoldOut, 409, "sold-out", false},
		{stock.ErrExists, 409, "sku-exists", false},
		{stock.ErrInvalid, 422, "invalid-sku", false},
		{stock.ErrKeyReused, 422, "key-reused", false},
		{stock.ErrUnknownOutcome, 503, "unknown-outcome", true},
		{stock.ErrStaleFence, 503, "lock-lost", true},
		{lock.ErrNotAcquired, 503, "lock-unavailable", true},
		{lock.ErrTimeout, 503, "lock-wait", true},
		{lock.ErrNoAnswer, 503, "lock-no-answer", true},
		{lock.ErrLost, 503, "lock-lost", true},
		{lock.ErrReleased, 503, "lock-lost", true},
		{lock.ErrClosed, 503, "shutting-down", true},
		{lock.ErrQueueFull, 503, "queue-full", true},
		{context.Canceled, 503, "interrupted", true},
		{context.DeadlineExceeded, 503, "interrupted", true},
		{errors.Join(lock.ErrNotAcquired, lock.ErrTimeout), 503, "lock-wait", true},
		{errors.Join(lock.ErrNotAcquired, lock.ErrNoAnswer, context.DeadlineExceeded), 503, "lock-no-answer", true},
		{errors.Join(lock.ErrNotAcquired, context.DeadlineExceeded), 503, "lock-unavailable", true},
		{errors.Join(lock.ErrNotAcquired, lock.ErrQueueFull), 503, "queue-full", true},
		{errors.Join(order.ErrUnknownOutcome, lock.ErrLost), 503, "unknown-outcome", true},
		{errors.Join(order.ErrUnknownOutcome, context.DeadlineExceeded), 503, "unknown-outcome", true},
		{errors.New("dial tcp 10.0.0.7:3306: secret"), 500, "internal", true},
		{order.ErrKeyTaken, 500, "internal", true}, // the service never lets it out
	} {
		t.Run(strings.ReplaceAll(c.err.Error(), "\n", " and "), func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			b := setup(t, func(config *orderhttp.Config) {
				config.Orders = broken{fmt.Errorf("sku %q: %w", "mug", c.err)}
				config.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			w := b.fail(t, c.err)
			problem := wantProblem(t, w, c.status, c.slug)
			if problem["retry_safe"] != c.again {
				t.Errorf("got retry_safe %v, want %v", problem["retry_safe"], c.again)
			}
			if after := w.Header().Get("Retry-After"); (after != "") != (c.again && c.status != 500) {
				t.Errorf("got Retry-After %q with status %d", after, c.status)
			}
			if got, want := theLine(t, &log)["level"], levelOf(c.status, c.slug); got != want {
				t.Errorf("got a line at level %v, want %s", got, want)
			}
		})
	}
}

// levelOf is "as loud as what happened": "a shop with too much to do must not have a
// line to write for each request that it turns away", which are a full lane's too.
func levelOf(status int, slug string) string {
	switch {
	case status == http.StatusInternalServerError:
		return "ERROR"
	case status > http.StatusInternalServerError && slug != "queue-full":
		return "WARN"
	}
	return "DEBUG"
}

// fail sends a request that may be answered with the error.
func (b *bundle) fail(t *testing.T, err error) *httptest.ResponseRecorder {
	t.Helper()
	if errors.Is(err, order.ErrNotFound) {
		return b.call(t, http.MethodGet, "/v1/orders/0190d0c0-0000-7000-8000-000000000000", "")
	}
	return b.buy(t, "key-1", goodOrder)
}

// panics is a service with a bug.
type panics struct{ broken }

func (panics) Place(context.Context, order.Request) (order.Order, bool, error) {
	panic("secret: index out of range")
}

// "What no row of the table knows is a 500 whose cause is logged and not told."
func TestErrorTable_causesAreNotTold(t *testing.T) {
	t.Parallel()
	for name, orders := range map[string]orderhttp.Orders{
		"error": broken{errors.New("secret: password of the database")},
		"panic": panics{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged bytes.Buffer
			b := setup(t, func(config *orderhttp.Config) {
				config.Orders = orders
				config.Log = slog.New(slog.NewJSONHandler(&logged, nil))
			})
			w := b.buy(t, "key-1", goodOrder)
			wantProblem(t, w, 500, "internal")
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("got %s, want no cause", w.Body)
			}
			if !strings.Contains(logged.String(), "secret") || !strings.Contains(logged.String(), `"level":"ERROR"`) {
				t.Errorf("got log %s, want the cause as an error", logged.String())
			}
		})
	}
}
