package orderhttp_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/order/orderhttp/contract"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store"
	"example.com/shop/internal/tape"
)

// bundle is both APIs over the real service and a database file of its own.
type bundle struct {
	config   orderhttp.Config
	handler  http.Handler
	operator http.Handler
	db       *gorm.DB
	stock    *stockstore.Store
	orders   *orderstore.Store

	// checked, if it is not nil, has the kinds of answers that were held to the
	// contract. A fuzzer sees the same few again and again, and has no time to lose.
	checked map[string]bool
}

// setup builds one. change may put fakes in where a real part cannot be made to
// fail; nil changes nothing.
func setup(t testing.TB, change func(*orderhttp.Config)) *bundle {
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
	return setupOn(t, db, lock.NewMemory(), 0, change)
}

// setupOn builds an instance of the shop that has this database and this lock.
// Its orders expire after hold; 0 means the default.
func setupOn(t testing.TB, db *gorm.DB, shared lock.Backend, hold time.Duration, change func(*orderhttp.Config)) *bundle {
	t.Helper()
	b := &bundle{db: db, stock: stockstore.New(db), orders: orderstore.New(db)}
	if _, fuzzing := t.(*testing.F); fuzzing {
		b.checked = map[string]bool{}
	}
	lockers := map[string]order.Locker{}
	for name, backend := range map[string]lock.Backend{order.RedisLock: shared, order.MemoryLock: lock.NewMemory()} {
		locker := lock.New(backend, lock.Options{TTL: 10 * time.Second, MaxWait: 10 * time.Second})
		t.Cleanup(func() { _ = locker.Close() })
		lockers[name] = locker
	}
	service, err := order.New(order.Config{Store: b.orders, Stock: b.stock, Lockers: lockers, Missing: without(lockers), CommitMargin: time.Second, Hold: hold})
	if err != nil {
		t.Fatal(err)
	}
	b.config = orderhttp.Config{
		Orders: service, Missing: service.Missing, Stock: b.stock, Auditor: b.orders,
		Timeout: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&b.config)
	}
	if b.handler, err = orderhttp.New(b.config); err != nil {
		t.Fatal(err)
	}
	if b.operator, err = orderhttp.NewOperator(orderhttp.OperatorConfig{
		Token: secret(t, operatorToken), Stock: b.stock, Auditor: b.config.Auditor,
		Timeout: 30 * time.Second, Log: b.config.Log,
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

// without tells of strategies whose locks are not among these.
func without(lockers map[string]order.Locker) map[string]string {
	missing := map[string]string{}
	for _, s := range order.Strategies() {
		if s.Lock != order.NoLock && lockers[s.Lock] == nil {
			missing[s.Name] = "not in this test"
		}
	}
	return missing
}

// lab switches teaching mode on.
func lab(c *orderhttp.Config) {
	c.Lab, c.Tapes, c.Servers = true, tape.NewShelf(), orderhttp.Servers{Database: "SQLite 3", Redis: "none"}
}

// supply creates a SKU that costs 12.50 EUR.
func (b *bundle) supply(t testing.TB, name string, units int64) {
	t.Helper()
	b.supplyAt(t, stock.Money{Minor: 1250, Currency: "EUR"}, name, units)
}

func (b *bundle) supplyAt(t testing.TB, price stock.Money, name string, units int64) {
	t.Helper()
	sku, err := stock.NewSKU(name, price, units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stock.Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
}

// call sends a request to the buyers' API. headers are "Name: value" lines.
func (b *bundle) call(t testing.TB, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return b.callOn(t, b.handler, method, target, body, headers...)
}

func (b *bundle) callOn(t testing.TB, handler http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	for _, line := range headers {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("header %q: want name: value", line)
		}
		r.Header.Add(name, value)
	}
	return b.serve(t, handler, r)
}

// serve lets the handler, which is that of b or some operator's, answer r, and
// fails unless the answer is as openapi.yaml has it.
func (b *bundle) serve(t testing.TB, handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	listener := contract.Operator
	if handler == b.handler {
		listener = contract.Buyers
	}
	document, err := listener()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if b.checked != nil {
		kind := r.Method + r.URL.Path + strconv.Itoa(w.Code)
		if b.checked[kind] {
			return w
		}
		b.checked[kind] = true
	}
	if err := document.Check(r, w.Code, w.Header(), w.Body.Bytes()); err != nil {
		t.Errorf("off the contract: %v", err)
	}
	return w
}

const asJSON = "Content-Type: application/json"

// buy sends an order.
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
