package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

type service = httpapi.Orders

// fake is an order service. The test sets its Place, and the error of its Order.
type fake struct {
	service
	place func(context.Context, order.Request) (order.Order, bool, error)
	read  error
}

func (f fake) Place(ctx context.Context, r order.Request) (order.Order, bool, error) {
	return f.place(ctx, r)
}
func (f fake) Order(context.Context, string, string) (order.Order, error) {
	return order.Order{}, f.read
}

// failing is a service that fails in one way.
func failing(err error) fake {
	return fake{read: err, place: func(context.Context, order.Request) (order.Order, bool, error) { return order.Order{}, false, err }}
}

// Every error that the service documents, as its row of the table answers it: status, the last part of the type, what
// may be done again, and the level of the log.
func TestErrorTable(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	orders := &fake{}
	s := newShop(t, func(c *httpapi.Config) {
		c.Orders = orders
		c.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	for _, c := range []struct {
		err   error
		want  string
		again string // retry_safe, and Retry-After where there is one
		level string
	}{
		{order.ErrKeyMissing, "400 key-missing", "false", "DEBUG"},
		{order.ErrKeyInvalid, "400 key-invalid", "false", "DEBUG"},
		{order.ErrInvalid, "422 invalid-order", "false", "DEBUG"},
		{order.ErrBuyer, "422 invalid-order", "false", "DEBUG"},
		{order.ErrUnknownSKU, "422 unknown-sku", "false", "DEBUG"},
		{order.ErrTooManyOpen, "429 too-many-open", "true 1", "DEBUG"},
		{&order.Error{Code: "too-many-open", Text: "x", Wait: -time.Minute}, "429 too-many-open", "true 1", "DEBUG"},
		{&order.Error{Code: "too-many-open", Text: "x", Wait: time.Second + 1}, "429 too-many-open", "true 2", "DEBUG"},
		{&order.Error{Code: "too-many-open", Text: "x", Wait: 1<<63 - 1}, "429 too-many-open", "true 3600", "DEBUG"},
		{order.ErrPurchaseLimit, "409 purchase-limit", "false", "DEBUG"},
		{order.ErrKeyReused, "422 key-reused", "false", "DEBUG"},
		{order.ErrExpired, "409 order-expired", "false", "DEBUG"},
		{order.ErrState, "409 order-ended", "false", "DEBUG"},
		{order.ErrSoldOut, "409 sold-out", "false", "DEBUG"},
		{order.ErrExists, "409 sku-exists", "false", "DEBUG"},
		{stock.ErrInvalid, "422 invalid-sku", "false", "DEBUG"},
		{order.ErrTooLate, "503 too-late", "true 1", "WARN"},
		{order.ErrBusy, "503 busy", "true 1", "WARN"},
		{order.ErrUnknownOutcome, "503 unknown-outcome", "true 1", "WARN"},
		{order.ErrStaleFence, "503 lock-lost", "true 1", "WARN"},
		{fmt.Errorf("%w: dial tcp 10.0.0.7:3306 (secret): %w", order.ErrBusy, syscall.EMFILE), "503 too-few-descriptors", "true 1", "WARN"},
		{lock.ErrNotAcquired, "503 lock-unavailable", "true 1", "WARN"},
		{lock.ErrTimeout, "503 lock-wait", "true 1", "DEBUG"},
		{lock.ErrNoAnswer, "503 lock-no-answer", "true 1", "WARN"},
		{lock.ErrLost, "503 lock-lost", "true 1", "WARN"},
		{lock.ErrReleased, "503 lock-lost", "true 1", "WARN"},
		{lock.ErrClosed, "503 shutting-down", "true 1", "WARN"},
		{lock.ErrQueueFull, "503 queue-full", "true 1", "DEBUG"},
		{context.Canceled, "503 interrupted", "true 1", "WARN"},
		{context.DeadlineExceeded, "503 interrupted", "true 1", "WARN"},
		{errors.Join(lock.ErrNotAcquired, lock.ErrTimeout), "503 lock-wait", "true 1", "DEBUG"},
		{errors.Join(lock.ErrNotAcquired, lock.ErrNoAnswer, context.DeadlineExceeded), "503 lock-no-answer", "true 1", "WARN"},
		{errors.Join(lock.ErrNotAcquired, context.DeadlineExceeded), "503 lock-unavailable", "true 1", "WARN"},
		{errors.Join(lock.ErrNotAcquired, lock.ErrQueueFull), "503 queue-full", "true 1", "DEBUG"},
		{errors.Join(order.ErrUnknownOutcome, lock.ErrLost), "503 unknown-outcome", "true 1", "WARN"},
		{errors.Join(order.ErrUnknownOutcome, context.DeadlineExceeded), "503 unknown-outcome", "true 1", "WARN"},
		{errors.New("dial tcp 10.0.0.7:3306: secret"), "500 internal", "true", "ERROR"},
		{order.ErrKeyTaken, "500 internal", "true", "ERROR"}, // the service never lets it out
	} {
		log.Reset()
		*orders = failing(fmt.Errorf("sku %q: %w", "mug", c.err))
		w := s.buy(t, "key-1", goodOrder)
		p := wantProblem(t, w, c.want)
		if got := strings.TrimSpace(fmt.Sprint(p["retry_safe"], " ", w.Header().Get("Retry-After"))); got != c.again {
			t.Errorf("%v: got %s, want %s", c.err, got, c.again)
		}
		if got := theLine(t, &log)["level"]; got != c.level {
			t.Errorf("%v: got a line at level %v, want %s", c.err, got, c.level)
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: got %s, want no cause of an internal error in it", c.err, w.Body)
		}
	}
	*orders = failing(order.ErrNotFound)
	wantProblem(t, s.call(t, "GET /v1/orders/0190d0c0-0000-7000-8000-000000000000", ""), "404 order-not-found")
	log.Reset()
	*orders = fake{place: func(context.Context, order.Request) (order.Order, bool, error) { panic("secret: index out of range") }}
	w := s.buy(t, "key-1", goodOrder)
	wantProblem(t, w, "500 internal")
	if line := theLine(t, &log); line["level"] != "ERROR" ||
		!strings.Contains(fmt.Sprint(line["error"]), "index out of range") || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("got %s and log %v, want the cause of a panic logged and not told", w.Body, line)
	}
}

// A client that hung up: nothing of the answer arrives, so that it is no fault of the shop's.
func TestHungUp(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ctx, hangUp := context.WithCancel(t.Context())
	s := newShop(t, func(c *httpapi.Config) {
		c.Orders = fake{place: func(ctx context.Context, _ order.Request) (order.Order, bool, error) {
			hangUp()
			<-ctx.Done()
			return order.Order{}, false, errors.Join(lock.ErrNotAcquired, ctx.Err())
		}}
		c.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/orders", strings.NewReader(goodOrder))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"key-1"}}
	s.handler.ServeHTTP(httptest.NewRecorder(), r)
	if line := theLine(t, &log); line["level"] != "DEBUG" || line["status"] != 499.0 {
		t.Errorf("got %v, want level DEBUG and status 499", line)
	}
}

// witness keeps what the API tells its Observer.
type witness struct {
	mu   sync.Mutex
	told []string
}

func (w *witness) Request(method, route string, status int, _ time.Duration) {
	w.tell(method + " " + route + " " + strconv.Itoa(status))
}

func (w *witness) Order(action, outcome string) { w.tell(action + " " + outcome) }

func (w *witness) tell(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, what)
}

// take returns the answers that the witness has seen since the last call.
func (w *witness) take() (told []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told, w.told = w.told, nil
	return told
}

// theLine returns the only line of the log, and empties that.
func theLine(t *testing.T, text *bytes.Buffer) (line map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text.Bytes(), &line); err != nil {
		t.Fatalf("got log %s, want one line: %v", text, err)
	}
	text.Reset()
	return line
}

// The observer gets the kind of each answer, for the metrics, and the log has the same kind.
func TestObserved(t *testing.T) {
	t.Parallel()
	var seen witness
	var text bytes.Buffer
	s := newShop(t, func(c *httpapi.Config) {
		c.Observer = &seen
		c.Log = slog.New(observe.NewHandler(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	})
	s.supply(t, "mug", 3)
	first, second := s.place(t, "key-1", "1"), s.place(t, "key-2", "1")
	seen.take()
	text.Reset()
	for _, c := range []struct {
		call, body, key string
		told            []string
		level, problem  string
		order           string // path of the order that is named; "new" for the one that was placed
	}{
		{"POST /v1/orders", goodOrder, "key-3", []string{"POST /v1/orders 201", "place placed"}, "INFO", "", "new"},
		{"POST /v1/orders", goodOrder, "key-1", []string{"POST /v1/orders 201", "place replayed"}, "INFO", "", first},
		{"POST /v1/orders", goodOrder, "key-4", []string{"POST /v1/orders 409", "place sold-out"}, "DEBUG", "sold-out", ""},
		{"POST /v1/orders", goodOrder, "", []string{"POST /v1/orders 400", "place key-missing"}, "DEBUG", "key-missing", ""},
		{"POST " + first + "/pay", "", "", []string{"POST /v1/orders/:id/pay 200", "buyers-pay paid"}, "INFO", "", first},
		// whatever key it is asked with
		{"POST " + first + "/pay", "", "", []string{"POST /v1/orders/:id/pay 200", "buyers-pay replayed"}, "INFO", "", first},
		{"POST " + first + "/pay", "", "key-5", []string{"POST /v1/orders/:id/pay 200", "buyers-pay replayed"}, "INFO", "", first},
		{"POST " + first + "/pay", "", "key-5", []string{"POST /v1/orders/:id/pay 200", "buyers-pay replayed"}, "INFO", "", first},
		{"POST " + first + "/cancel", "", "", []string{"POST /v1/orders/:id/cancel 409", "cancel order-ended"}, "DEBUG", "order-ended", first},
		{"POST " + second + "/cancel", "", "", []string{"POST /v1/orders/:id/cancel 200", "cancel cancelled"}, "INFO", "", second},
		{"POST " + second + "/cancel", "", "key-6", []string{"POST /v1/orders/:id/cancel 200", "cancel replayed"}, "INFO", "", second},
		{"GET " + first, "", "", []string{"GET /v1/orders/:id 200"}, "DEBUG", "", first},
		{"HEAD /v1/skus/mug", "", "", []string{"HEAD /v1/skus/:sku 200"}, "DEBUG", "", ""},
		{"GET /readyz", "", "", []string{"GET /readyz 200"}, "DEBUG", "", ""},
		{"BREW /coffee", "", "", []string{"BREW  404"}, "DEBUG", "not-found", ""},
	} {
		headers := []string{"X-Request-Id: r-1", asJSON}
		if c.key != "" {
			headers = append(headers, "Idempotency-Key: "+c.key)
		}
		w := s.call(t, c.call, c.body, headers...)
		if got := seen.take(); !slices.Equal(got, c.told) {
			t.Errorf("%s: told %q, want %q", c.call, got, c.told)
		}
		line := theLine(t, &text)
		method, path, _ := strings.Cut(c.call, " ")
		want := map[string]any{"level": c.level, "msg": "request", "request_id": "r-1", "method": method, "path": path, "status": float64(w.Code)}
		maps.DeleteFunc(line, func(k string, _ any) bool { return k == "time" || k == "took_ms" || k == "error" })
		if c.order == "new" {
			c.order = w.Header().Get("Location")
		}
		if c.order != "" {
			want["order_id"] = strings.TrimPrefix(c.order, "/v1/orders/")
		}
		if c.problem != "" {
			want["problem"] = c.problem
		}
		if diff := cmp.Diff(want, line); diff != "" {
			t.Errorf("%s %s: log (-want +got)\n%s", c.call, c.key, diff)
		}
	}
}

// A request may bring an X-Request-Id along, "1 to 64 letters, digits or any of ._:/+=@- ." Otherwise it gets one, a
// UUIDv7. The answer has it, and a problem too.
func TestRequestID(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	const name = "X-Request-Id: "
	long := times("x", 64)
	for _, c := range []struct {
		headers []string
		keeps   string // empty: one of the shop's own
	}{
		{nil, ""}, {[]string{name + "A-z0.9_:/+=@"}, "A-z0.9_:/+=@"}, {[]string{name + long}, long},
		{[]string{name + long + "x"}, ""}, {[]string{name}, ""},
		{[]string{name + "a b"}, ""}, {[]string{name + `a"b`}, ""}, {[]string{name + "a\nb"}, ""},
		{[]string{name + "ä"}, ""}, {[]string{name + "a", name + "a"}, ""},
	} {
		w := s.call(t, "GET /nothing", "", c.headers...)
		got := w.Header().Get("X-Request-Id")
		if id, err := uuid.Parse(got); c.keeps != "" && got != c.keeps || c.keeps == "" && (err != nil || id.Version() != 7) {
			t.Errorf("%q: got id %q, want %q or else a UUIDv7", c.headers, got, c.keeps)
		}
		if told := wantProblem(t, w, "404 not-found")["request_id"]; told != got {
			t.Errorf("%q: got request_id %v in the problem, want %q", c.headers, told, got)
		}
	}
}
