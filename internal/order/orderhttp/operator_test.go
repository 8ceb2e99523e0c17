package orderhttp_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/order/orderhttp"
)

const (
	operatorToken = "bXn8q2uT0vKx7Jd5sW1yZ4aC6eG9hL3m"
	asOperator    = "Authorization: Bearer " + operatorToken
)

// operate sends a request to the operator's API, with the token.
func (b *bundle) operate(t testing.TB, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return b.callOn(t, b.operator, method, target, body, append(slices.Clone(headers), asOperator)...)
}

const (
	newSKU     = `{"sku":"cup","price":{"minor":1250,"currency":"EUR"},"units":5}`
	moreMugs   = `{"kind":"supply","units":5}`
	movesOfMug = "/v1/skus/mug/movements"
)

// What the operator's API answers. Its token opens nothing of the buyers'.
func TestOperator_routes(t *testing.T) {
	b := withTokens(t)
	b.supply(t, "mug", 3)
	for call, c := range map[string]struct {
		body   string
		status int
	}{
		"POST /v1/skus":         {newSKU, http.StatusCreated},
		"GET /v1/audit":         {"", http.StatusOK},
		"GET /healthz":          {"", http.StatusOK},
		"GET /debug/pprof/":     {"", http.StatusOK},
		"GET /debug/pprof/heap": {"", http.StatusOK},

		"GET /debug/pprof/goroutine?debug=1":  {"", http.StatusOK},
		"GET /debug/pprof/symbol":             {"", http.StatusOK},
		"GET /healthz?from=balancer":          {"", http.StatusOK},
		"GET /debug/pprof/heap?seconds=never": {"", http.StatusBadRequest},
	} {
		method, target, _ := strings.Cut(call, " ")
		if w := b.operate(t, method, target, c.body, asJSON); w.Code != c.status {
			t.Errorf("%s: got %d %s, want %d", call, w.Code, w.Body, c.status)
		}
	}
	b.wantUntouched(t, "mug", 3)
	b.wantUntouched(t, "cup", 5)
	wantStatus(t, b.callOn(t, b.operator, http.MethodGet, "/healthz", ""), http.StatusOK) // to anybody
	wantProblem(t, b.buy(t, "key-1", goodOrder, asOperator), http.StatusUnauthorized, "bad-token")
}

// operatorWithMetrics is the operator's API of a shop that has metrics.
func (b *bundle) operatorWithMetrics(t *testing.T) http.Handler {
	t.Helper()
	handler, err := orderhttp.NewOperator(orderhttp.OperatorConfig{
		Token: secret(t, operatorToken), Stock: b.stock, Auditor: b.orders, Log: b.config.Log,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_, _ = w.Write([]byte("orders 1\n"))
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// Metrics are served where somebody has some.
func TestOperator_metrics(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	handler := b.operatorWithMetrics(t)
	if w := b.callOn(t, handler, http.MethodGet, "/metrics", "", asOperator); w.Code != http.StatusOK || w.Body.String() != "orders 1\n" {
		t.Errorf("got %d %s, want the metrics", w.Code, w.Body)
	}
	wantProblem(t, b.callOn(t, handler, http.MethodGet, "/metrics", ""), http.StatusUnauthorized, "no-token")
}

// deadlines notes how far a handler moves the write deadline of its connection.
type deadlines struct {
	*httptest.ResponseRecorder
	write time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = at
	return nil
}

// "A profile moves the write deadline of its own connection as far as it needs",
// and is not cut by the limit of other requests.
func TestOperator_profile(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	handler, err := orderhttp.NewOperator(orderhttp.OperatorConfig{
		Token: secret(t, operatorToken), Stock: b.stock, Auditor: b.orders, Log: b.config.Log, Timeout: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := contextOfServer(t, &http.Server{WriteTimeout: time.Minute, ReadHeaderTimeout: time.Minute})
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/debug/pprof/trace?seconds=1", nil)
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	began := time.Now()
	handler.ServeHTTP(w, r)
	if took := time.Since(began); w.Code != http.StatusOK || w.Body.Len() == 0 || took < time.Second {
		t.Errorf("got %d and %d bytes after %v, want a trace of a second", w.Code, w.Body.Len(), took)
	}
	if allowed := w.write.Sub(began); allowed < time.Minute+time.Second {
		t.Errorf("got %v to write, want the server's minute and the second", allowed)
	}
}

func TestNewOperator_missing(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	whole := orderhttp.OperatorConfig{Token: secret(t, operatorToken), Stock: b.stock, Auditor: b.orders, Log: b.config.Log}
	for name, less := range map[string]func(*orderhttp.OperatorConfig){
		"token":   func(c *orderhttp.OperatorConfig) { c.Token = auth.Secret{} },
		"stock":   func(c *orderhttp.OperatorConfig) { c.Stock = nil },
		"auditor": func(c *orderhttp.OperatorConfig) { c.Auditor = nil },
		"log":     func(c *orderhttp.OperatorConfig) { c.Log = nil },
	} {
		c := whole
		less(&c)
		if _, err := orderhttp.NewOperator(c); err == nil {
			t.Errorf("got nil without %s, want an error", name)
		}
	}
}
