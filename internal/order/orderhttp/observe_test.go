package orderhttp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"example.com/shop/internal/logs"
	"example.com/shop/internal/order/orderhttp"
)

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

// take returns what was told since the last time.
func (w *witness) take() (told []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told, w.told = w.told, nil
	return told
}

// What is told for metrics, and with it logged, for each kind of answer.
func TestAPI_observed(t *testing.T) {
	t.Parallel()
	var seen witness
	var text bytes.Buffer
	b := setup(t, func(c *orderhttp.Config) {
		c.Observer = &seen
		c.Log = slog.New(logs.NewHandler(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	})
	b.supply(t, "mug", 3)
	mug := `{"lines":[{"sku":"mug","quantity":1}]}`
	first := location(t, b.buy(t, "key-1", mug).Header())
	second := location(t, b.buy(t, "key-2", mug).Header())
	seen.take()
	text.Reset()
	for _, c := range []struct {
		method, path, body, key string
		told                    []string
		level, problem, orderID string
	}{
		{method: "POST", path: "/v1/orders", body: mug, key: "key-3",
			told: []string{"POST /v1/orders 201", "place placed"}, level: "INFO", orderID: "*"},
		{method: "POST", path: "/v1/orders", body: mug, key: "key-1",
			told: []string{"POST /v1/orders 201", "place replayed"}, level: "INFO", orderID: first},
		{method: "POST", path: "/v1/orders", body: mug, key: "key-4",
			told: []string{"POST /v1/orders 409", "place sold-out"}, level: "DEBUG", problem: "sold-out"},
		{method: "POST", path: "/v1/orders", body: mug,
			told: []string{"POST /v1/orders 400", "place key-missing"}, level: "DEBUG", problem: "key-missing"},
		{method: "POST", path: "/v1/orders/" + first + "/pay",
			told: []string{"POST /v1/orders/:id/pay 200", "pay paid"}, level: "INFO", orderID: first},
		{method: "POST", path: "/v1/orders/" + first + "/pay", // "whatever key it was asked with"
			told: []string{"POST /v1/orders/:id/pay 200", "pay replayed"}, level: "INFO", orderID: first},
		{method: "POST", path: "/v1/orders/" + first + "/pay", key: "key-5",
			told: []string{"POST /v1/orders/:id/pay 200", "pay replayed"}, level: "INFO", orderID: first},
		{method: "POST", path: "/v1/orders/" + first + "/pay", key: "key-5",
			told: []string{"POST /v1/orders/:id/pay 200", "pay replayed"}, level: "INFO", orderID: first},
		{method: "POST", path: "/v1/orders/" + first + "/cancel",
			told: []string{"POST /v1/orders/:id/cancel 409", "cancel order-ended"}, level: "DEBUG", problem: "order-ended", orderID: first},
		{method: "POST", path: "/v1/orders/" + second + "/cancel",
			told: []string{"POST /v1/orders/:id/cancel 200", "cancel cancelled"}, level: "INFO", orderID: second},
		{method: "POST", path: "/v1/orders/" + second + "/cancel", key: "key-6",
			told: []string{"POST /v1/orders/:id/cancel 200", "cancel replayed"}, level: "INFO", orderID: second},
		{method: "GET", path: "/v1/orders/" + first,
			told: []string{"GET /v1/orders/:id 200"}, level: "DEBUG", orderID: first},
		{method: "HEAD", path: "/v1/skus/mug", told: []string{"HEAD /v1/skus/:sku 200"}, level: "DEBUG"},
		{method: "GET", path: "/readyz", told: []string{"GET /readyz 200"}, level: "DEBUG"},
		{method: "BREW", path: "/coffee", told: []string{"BREW  404"}, level: "DEBUG", problem: "not-found"},
	} {
		headers := []string{"X-Request-Id: r-1"}
		if c.body != "" {
			headers = append(headers, asJSON)
		}
		if c.key != "" {
			headers = append(headers, "Idempotency-Key: "+c.key)
		}
		w := b.call(t, c.method, c.path, c.body, headers...)
		name := c.method + " " + c.path + " " + c.key
		if got := seen.take(); !slices.Equal(got, c.told) {
			t.Errorf("%s: told %q, want %q", name, got, c.told)
		}
		line := theLine(t, &text)
		if c.orderID == "*" {
			c.orderID = location(t, w.Header())
		}
		want := map[string]any{"level": c.level, "msg": "request", "request_id": "r-1", "method": c.method, "path": c.path, "status": float64(w.Code)}
		maps.DeleteFunc(line, func(k string, _ any) bool { return k == "time" || k == "took_ms" || k == "error" })
		if c.orderID != "" {
			want["order_id"] = c.orderID
		}
		if c.problem != "" {
			want["problem"] = c.problem
		}
		if diff := cmp.Diff(want, line); diff != "" {
			t.Errorf("%s: log (-want +got)\n%s", name, diff)
		}
	}
}

// location returns the id of the order that was placed.
func location(t *testing.T, h http.Header) string {
	t.Helper()
	id, found := strings.CutPrefix(h.Get("Location"), "/v1/orders/")
	if !found {
		t.Fatalf("got headers %v, want the Location of an order", h)
	}
	return id
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

// "A request may bring an X-Request-Id along; a shop that cannot use it makes
// one. The answer has it, and a problem too."
func TestAPI_requestID(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		headers []string
		keeps   string // empty: one of the shop's own
	}{
		"none":       {nil, ""},
		"given":      {[]string{"X-Request-Id: A-z0.9_:/+=@"}, "A-z0.9_:/+=@"},
		"64":         {[]string{"X-Request-Id: " + long}, long},
		"65":         {[]string{"X-Request-Id: " + long + "x"}, ""},
		"empty":      {[]string{"X-Request-Id: "}, ""},
		"blank":      {[]string{"X-Request-Id: a b"}, ""},
		"quote":      {[]string{`X-Request-Id: a"b`}, ""},
		"line break": {[]string{"X-Request-Id: a\nb"}, ""},
		"not ASCII":  {[]string{"X-Request-Id: ä"}, ""},
		"two":        {[]string{"X-Request-Id: a", "X-Request-Id: a"}, ""},
	} {
		w := b.call(t, http.MethodGet, "/nothing", "", c.headers...)
		got := w.Header().Get("X-Request-Id")
		switch {
		case c.keeps != "" && got != c.keeps:
			t.Errorf("%s: got id %q, want %q", name, got, c.keeps)
		case c.keeps == "":
			if id, err := uuid.Parse(got); err != nil || id.Version() != 7 {
				t.Errorf("%s: got id %q, want a UUIDv7", name, got)
			}
		}
		if told := wantProblem(t, w, http.StatusNotFound, "not-found")["request_id"]; told != got {
			t.Errorf("%s: got request_id %v in the problem, want %q", name, told, got)
		}
	}
}

// Each request has an id of its own.
func TestAPI_requestIDs(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	one := b.call(t, http.MethodGet, "/healthz", "").Header().Get("X-Request-Id")
	two := b.call(t, http.MethodGet, "/healthz", "").Header().Get("X-Request-Id")
	if one == two || !regexp.MustCompile(`^[0-9a-f-]{36}$`).MatchString(one) {
		t.Errorf("got ids %q and %q, want two", one, two)
	}
}
