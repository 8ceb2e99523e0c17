package orderhttp_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store"
)

// bundle is the API over the real service and a database file of its own.
type bundle struct {
	config  orderhttp.Config
	handler http.Handler
	stock   *stockstore.Store
	orders  *orderstore.Store
}

// setup builds one. change may put fakes in where a real part cannot be made to
// fail; nil changes nothing.
func setup(t *testing.T, change func(*orderhttp.Config)) *bundle {
	t.Helper()
	ctx := t.Context()
	db, err := store.SQLite(ctx, filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(db) })
	if _, err := store.Migrate(ctx, db); err != nil {
		t.Fatal(err)
	}
	b := &bundle{stock: stockstore.New(db), orders: orderstore.New(db)}
	lockers := map[string]order.Locker{}
	for _, name := range []string{order.RedisLock, order.MemoryLock} {
		locker := lock.New(lock.NewMemory(), lock.Options{TTL: 10 * time.Second, MaxWait: 10 * time.Second})
		t.Cleanup(func() { _ = locker.Close() })
		lockers[name] = locker
	}
	service, err := order.New(order.Config{Store: b.orders, Stock: b.stock, Lockers: lockers, CommitMargin: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	b.config = orderhttp.Config{
		Orders: service, Stock: b.stock, Auditor: b.orders,
		Timeout: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&b.config)
	}
	if b.handler, err = orderhttp.New(b.config); err != nil {
		t.Fatal(err)
	}
	return b
}

// lab switches teaching mode on.
func lab(c *orderhttp.Config) { c.Lab = true }

// supply creates a SKU.
func (b *bundle) supply(t *testing.T, name string, units int64) {
	t.Helper()
	sku, err := stock.NewSKU(name, stock.Money{Minor: 1250, Currency: "EUR"}, units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stock.Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
}

// call sends a request. headers are "Name: value" lines.
func (b *bundle) call(t *testing.T, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	for _, line := range headers {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("header %q: want name: value", line)
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

const asJSON = "Content-Type: application/json"

// buy orders one line.
func (b *bundle) buy(t *testing.T, key, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return b.call(t, http.MethodPost, "/v1/orders", body, append(headers, asJSON, "Idempotency-Key: "+key)...)
}

// wantStatus fails unless the answer has the status, the media type that goes
// with it, and an end of line.
func wantStatus(t *testing.T, w *httptest.ResponseRecorder, want int) {
	t.Helper()
	if w.Code != want {
		t.Fatalf("got status %d %s, want %d", w.Code, w.Body, want)
	}
	media := "application/json; charset=utf-8"
	if want >= 400 {
		media = "application/problem+json"
	}
	if got := w.Header().Get("Content-Type"); got != media {
		t.Errorf("got Content-Type %q, want %q", got, media)
	}
	if !strings.HasSuffix(w.Body.String(), "}\n") {
		t.Errorf("got body %q, want JSON and an end of line", w.Body)
	}
}

// wantProblem fails unless the answer is this problem.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, slug string) map[string]any {
	t.Helper()
	wantStatus(t, w, status)
	var got map[string]any
	unmarshal(t, w, &got)
	if got["type"] != "/problems/"+slug || got["status"] != float64(status) || got["title"] == "" || got["detail"] == "" {
		t.Errorf("got problem %v, want type /problems/%s, status %d, a title and a detail", got, slug, status)
	}
	if _, ok := got["retry_safe"].(bool); !ok {
		t.Errorf("got problem %v, want a retry_safe", got)
	}
	return got
}

func unmarshal(t *testing.T, w *httptest.ResponseRecorder, v any) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
		t.Fatalf("got body %q: %v", w.Body, err)
	}
}

// wantUntouched fails unless the SKU has all its units and the accounts agree.
func (b *bundle) wantUntouched(t *testing.T, name string, units int64) {
	t.Helper()
	sku, err := b.stock.SKU(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if want := (stock.Level{Supplied: units, Available: units}); sku.Level != want {
		t.Errorf("got level %+v, want %+v", sku.Level, want)
	}
	b.wantClean(t)
}

func (b *bundle) wantClean(t *testing.T) {
	t.Helper()
	report := orderhttp.NewAuditReport()
	if err := b.orders.Audit(t.Context(), "", report.Account, report.Difference); err != nil {
		t.Fatal(err)
	}
	if !report.OK {
		t.Errorf("got differences %+v, want none", report.Differences)
	}
}
