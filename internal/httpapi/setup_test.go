package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/httpapi/contract"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// shop is both APIs of an instance, over the real service.
type shop struct {
	config            httpapi.Config
	db                *store.Store
	handler, operator http.Handler
}

// newShop returns one with a database of its own. change may put fakes in where a real part cannot be made to fail; nil
// changes nothing.
func newShop(t testing.TB, change func(*httpapi.Config)) *shop {
	t.Helper()
	return newInstance(t, instance{db: storetest.SQLite(t), locks: lock.NewMemory()}, change)
}

// instance says how one instance of a shop sells. Those with the same database and locks are of one shop.
type instance struct {
	db      *store.Store
	locks   lock.Backend
	maxOpen int
	hold    time.Duration
}

func newInstance(t testing.TB, i instance, change func(*httpapi.Config)) *shop {
	t.Helper()
	locker := lock.New(i.locks, lock.Options{MaxWait: 5 * time.Minute})
	lanes := batch.New(batch.Config{
		Shop: strategy.Shop{Store: i.db, MaxOpen: i.maxOpen, CommitTime: time.Second}, Locker: strategy.LockerOf(locker),
	})
	t.Cleanup(func() {
		lanes.Close()
		if err := locker.Close(); err != nil {
			t.Errorf("close locker: %v", err)
		}
	})
	service := order.New(order.Config{Store: i.db, Strategy: lanes, Ends: lanes, Hold: i.hold})
	s := &shop{db: i.db, config: httpapi.Config{
		Orders: service, Store: i.db,
		Identify: byHeader, BuyersPay: true, OperatorToken: secret(t, operatorToken), PaymentsToken: secret(t, paymentsToken),
		Timeout: 30 * time.Second, OperatorTimeout: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
	}}
	if change != nil {
		change(&s.config)
	}
	s.handler, s.operator = httpapi.New(s.config), httpapi.NewOperator(s.config)
	return s
}

// byHeader lets buyers name themselves.
func byHeader(r *http.Request) (string, error) {
	if buyer := r.Header.Get("Shop-Buyer"); buyer != "" {
		return buyer, nil
	}
	return "guest", nil
}

// withTokens makes the shop ask for tokens.
func withTokens(t testing.TB) func(*httpapi.Config) {
	return func(c *httpapi.Config) { c.Buyers, c.Identify = tokens(t, shopSecret), nil }
}

// Four secrets of 32 bytes.
var (
	shopSecret    = base64.StdEncoding.EncodeToString([]byte("0123456789abcdefghijklmnopqrstuv"))
	otherSecret   = base64.StdEncoding.EncodeToString([]byte("vutsrqponmlkjihgfedcba9876543210"))
	operatorToken = base64.StdEncoding.EncodeToString([]byte("the operator's: 2345 ABCDEFGHIJK"))
	paymentsToken = base64.StdEncoding.EncodeToString([]byte("a payment service's: 2345 ABCDEF"))
	asOperator    = "Authorization: Bearer " + operatorToken
	asProvider    = "Authorization: Bearer " + paymentsToken
)

func secret(t testing.TB, text string) auth.Secret {
	t.Helper()
	made, err := auth.NewSecret(text)
	testserver.Must(t, err)
	return made
}

func tokens(t testing.TB, text string) *auth.Tokens {
	t.Helper()
	return auth.New(secret(t, text))
}

// shows returns the header with a token of the buyer's.
func shows(t testing.TB, secret, buyer string) string {
	t.Helper()
	token, _, err := tokens(t, secret).Mint(buyer, time.Hour)
	testserver.Must(t, err)
	return "Authorization: Bearer " + token
}

// supply creates a SKU that costs 12.50 EUR.
func (s *shop) supply(t testing.TB, name string, units int64) {
	t.Helper()
	s.supplyAt(t, stock.Money{Minor: 1250, Currency: "EUR"}, name, units)
}

func (s *shop) supplyAt(t testing.TB, price stock.Money, name string, units int64) {
	t.Helper()
	sku, err := stock.NewSKU(name, price, units, time.Now())
	testserver.Must(t, err)
	testserver.Must(t, s.db.Create(t.Context(), sku))
}

// call sends a request to the buyers' API, such as "GET /v1/skus". headers are "Name: value" lines.
func (s *shop) call(t testing.TB, call, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return s.callOn(t, s.handler, call, body, headers...)
}

// operate sends one to the operator's, with the token.
func (s *shop) operate(t testing.TB, call, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return s.callOn(t, s.operator, call, body, append([]string{asOperator, asJSON}, headers...)...)
}

func (s *shop) callOn(t testing.TB, handler http.Handler, call, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return s.send(t, handler, call, strings.NewReader(body), headers...)
}

func (s *shop) send(t testing.TB, handler http.Handler, call string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	method, target, _ := strings.Cut(call, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, target, body)
	for _, line := range headers {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("header %q: want name: value", line)
		}
		r.Header.Add(name, value)
	}
	return s.serve(t, handler, r)
}

// serve lets the handler of s, or the handler of an operator, answer r. It fails unless the answer is as openapi.yaml
// says.
func (s *shop) serve(t testing.TB, handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	document := contract.Operator()
	if handler == s.handler {
		document = contract.Buyers()
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if err := document.Check(r, w.Code, w.Header(), w.Body.Bytes()); err != nil {
		t.Errorf("off the contract: %v", err)
	}
	return w
}

const (
	asJSON    = "Content-Type: application/json"
	withKey   = "Idempotency-Key: key-1"
	goodOrder = `{"lines":[{"sku":"mug","quantity":1}]}`
)

// line returns an order of mugs whose quantity is the given text, lines one of these lines.
func line(quantity string) string { return lines(`{"sku":"mug","quantity":` + quantity + `}`) }
func lines(text string) string    { return `{"lines":[` + text + `]}` }

// buy sends an order.
func (s *shop) buy(t testing.TB, key, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return s.call(t, "POST /v1/orders", body, append(headers, asJSON, "Idempotency-Key: "+key)...)
}

// place buys some mugs and returns the order's path.
func (s *shop) place(t testing.TB, key, quantity string, headers ...string) (path string) {
	t.Helper()
	w := s.buy(t, key, line(quantity), headers...)
	wantStatus(t, w, http.StatusCreated)
	return w.Header().Get("Location")
}

// wantStatus fails unless the answer has the status, the media type that goes with it, and an end of line.
func wantStatus(t testing.TB, w *httptest.ResponseRecorder, want int) {
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

// wantProblem fails unless the answer is the problem, such as "409 sold-out".
func wantProblem(t testing.TB, w *httptest.ResponseRecorder, problem string) map[string]any {
	t.Helper()
	code, slug, _ := strings.Cut(problem, " ")
	status, err := strconv.Atoi(code)
	testserver.Must(t, err)
	wantStatus(t, w, status)
	got := unmarshal[map[string]any](t, w)
	detail, _ := got["detail"].(string)
	if got["type"] != "/problems/"+slug || got["status"] != float64(status) || got["title"] == "" || detail == "" || len(detail) > 500 {
		t.Errorf("got problem %v, want %s, with a title and a short detail", got, problem)
	}
	return got
}

// wantReplay fails unless again is the same answer as first, and says so.
func wantReplay(t testing.TB, first, again *httptest.ResponseRecorder) {
	t.Helper()
	wantStatus(t, again, first.Code)
	if diff := cmp.Diff(first.Body.String(), again.Body.String()); diff != "" {
		t.Errorf("the replay differs:\n%s", diff)
	}
	if got, want := again.Header().Get("Location"), first.Header().Get("Location"); got != want {
		t.Errorf("got Location %q, want %q", got, want)
	}
	if again.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("got no Idempotent-Replayed on a replay")
	}
}

func unmarshal[T any](t testing.TB, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("got body %q: %v", w.Body, err)
	}
	return v
}

// wantLevel fails unless the SKU has this level and the accounts agree.
func (s *shop) wantLevel(t testing.TB, name string, want stock.Level) {
	t.Helper()
	sku, err := s.db.SKU(t.Context(), name)
	if err != nil || sku.Level != want {
		t.Errorf("%s: got level %v, %v, want %v", name, sku.Level, err, want)
	}
	report := stock.NewReport()
	if err := s.db.Audit(t.Context(), "", report.AddAccount, report.AddDifference); err != nil || !report.OK {
		t.Errorf("got differences %+v, %v, want none", report.Differences, err)
	}
}

// rows reads everything that a shop keeps in SQLite, as text.
func (s *shop) rows(t testing.TB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range query(t, s.db, "SELECT name FROM sqlite_master WHERE type = 'table'") {
		all[table] = query(t, s.db, "SELECT * FROM "+table)
	}
	return all
}

func query(t testing.TB, db *store.Store, statement string) (all []string) {
	t.Helper()
	rows, err := db.DB().QueryContext(t.Context(), statement)
	testserver.Must(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	testserver.Must(t, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		testserver.Must(t, rows.Scan(into...))
		all = append(all, fmt.Sprint(values...))
	}
	testserver.Must(t, rows.Err())
	return all
}
