package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

type money struct {
	Minor    int64
	Currency string
}

type lineShown struct {
	SKU      string
	Quantity int64
	Price    money
}

type orderShown struct {
	ID, Buyer, Status string
	Lines             []lineShown
	Total             money
	CreatedAt         time.Time `json:"created_at"`
	ExpiresAt         time.Time `json:"expires_at"`
}

// An order has one line for each SKU, as the buyer wrote them, and their total. It is read as it was placed, and the
// same order said in other lines is the same request.
func TestPlaceOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "mug", 5)
	s.supplyAt(t, stock.Money{Minor: 99, Currency: "EUR"}, "hat", 5)
	const ann = "Shop-Buyer: ann"
	w := s.buy(t, "key-1", lines(`{"sku":"mug","quantity":1},{"sku":"hat","quantity":3},{"sku":"mug","quantity":2}`), ann)
	wantStatus(t, w, http.StatusCreated)
	got := unmarshal[orderShown](t, w)
	if id, err := uuid.Parse(got.ID); err != nil || id.Version() != 7 || w.Header().Get("Location") != "/v1/orders/"+got.ID {
		t.Errorf("got id %q at %q, want a UUIDv7", got.ID, w.Header().Get("Location"))
	}
	if w.Header().Get("Idempotent-Replayed") != "" {
		t.Error("got Idempotent-Replayed on the first answer")
	}
	if age := time.Since(got.CreatedAt); age < 0 || age > time.Minute || got.CreatedAt.Location() != time.UTC ||
		got.ExpiresAt.Sub(got.CreatedAt) != 15*time.Minute {
		t.Errorf("got %v to %v, want it to begin now, in UTC, and to end 15 minutes later", got.CreatedAt, got.ExpiresAt)
	}
	want := orderShown{
		ID: got.ID, Buyer: "ann", Status: "pending", CreatedAt: got.CreatedAt, ExpiresAt: got.ExpiresAt,
		Lines: []lineShown{{"mug", 3, money{1250, "EUR"}}, {"hat", 3, money{99, "EUR"}}},
		Total: money{3*1250 + 3*99, "EUR"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
	read := s.call(t, "GET /v1/orders/"+got.ID, "", ann)
	wantStatus(t, read, http.StatusOK)
	if read.Body.String() != w.Body.String() {
		t.Errorf("got %s, placed %s", read.Body, w.Body)
	}
	wantReplay(t, w, s.buy(t, "key-1", ` {"lines": [{"quantity":3, "sku":"mug"}, {"sku":"hat","quantity":3}]}`, ann))
	wantProblem(t, s.buy(t, "key-1", line("2"), ann), "422 key-reused")
	// Keys belong to a buyer, and their letters count.
	wantStatus(t, s.buy(t, "key-1", goodOrder), http.StatusCreated)
	wantStatus(t, s.buy(t, "KEY-1", goodOrder, ann), http.StatusCreated)
	if p := wantProblem(t, s.buy(t, "key-2", goodOrder, ann), "409 sold-out"); p["retry_safe"] != false {
		t.Errorf("got %v, want it not to be safe to ask again", p)
	}
	s.wantLevel(t, "mug", stock.Level{Supplied: 5, Reserved: 5})
	// Another buyer's order is not there.
	for _, other := range []string{"Shop-Buyer: bob", "Shop-Buyer: Ann"} {
		for _, call := range []string{"GET /v1/orders/%s", "POST /v1/orders/%s/pay", "POST /v1/orders/%s/cancel"} {
			wantProblem(t, s.call(t, fmt.Sprintf(call, got.ID), "", other), "404 order-not-found")
		}
	}
	wantLife(t, s.call(t, "GET /v1/orders/"+got.ID, "", ann), "pending")
}

// fromAll sends the same request many times at once, to all instances in turn, and again what is refused because the
// first is in progress. It returns the one answer that is no replay; all others must be the same.
func fromAll(t *testing.T, instances []*shop, send func(s *shop) *httptest.ResponseRecorder) (first *httptest.ResponseRecorder) {
	t.Helper()
	answers := make([]*httptest.ResponseRecorder, 50)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-start
			s := instances[i%len(instances)]
			w := send(s)
			for end := time.Now().Add(30 * time.Second); w.Code == http.StatusServiceUnavailable && time.Now().Before(end); w = send(s) {
				wantProblem(t, w, "503 busy")
			}
			answers[i] = w
		})
	}
	close(start)
	all.Wait()
	for _, w := range answers {
		if w.Header().Get("Idempotent-Replayed") == "" {
			if first != nil {
				t.Fatalf("two that are no replay: %d %s and %d %s", first.Code, first.Body, w.Code, w.Body)
			}
			first = w
		}
	}
	if first == nil {
		t.Fatalf("all are replays: %d %s", answers[0].Code, answers[0].Body)
	}
	for _, w := range answers {
		if w != first {
			wantReplay(t, first, w)
		}
	}
	return first
}

// "A repeat gets the status, the Location and, byte for byte, the body of the first answer": 50 requests at once place
// one order, pay it and cancel another; then the price changes, and an order expires.
func TestReplay(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		var instances, brief []*shop
		database := kind.New(t, "innodb_lock_wait_timeout=60") // on a slow machine, fifty wait for each other
		database.Migrated(t)
		locks := lock.NewMemory()
		for range 3 {
			const hold = time.Millisecond + time.Nanosecond // more digits than a database keeps
			instances = append(instances, newInstance(t, instance{db: database.Open(t), locks: locks}, nil))
			brief = append(brief, newInstance(t, instance{db: database.Open(t), locks: locks, hold: hold}, nil))
		}
		s := instances[0]
		s.supply(t, "mug", 100)
		for how, status := range map[string]string{"pay": "paid", "cancel": "cancelled"} {
			place := func(s *shop) *httptest.ResponseRecorder { return s.buy(t, "place to "+how, line("2")) }
			placed := fromAll(t, instances, place)
			path := placed.Header().Get("Location")
			end := func(s *shop) *httptest.ResponseRecorder {
				return s.call(t, "POST "+path+"/"+how, "", "Idempotency-Key: "+how)
			}
			ended := fromAll(t, instances, end)
			wantLife(t, ended, status)
			storetest.Exec(t, s.db, "UPDATE skus SET price_minor = price_minor + 1")
			for _, s := range instances {
				wantReplay(t, placed, place(s))
				wantReplay(t, ended, end(s))
			}
		}
		placed := brief[0].buy(t, "key-1", line("2"))
		wantStatus(t, placed, http.StatusCreated)
		for now := (time.Time{}); now.Before(unmarshal[orderShown](t, placed).ExpiresAt); {
			var err error
			if now, err = s.db.Now(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range brief {
			wantRefusal(t, s.call(t, "POST "+placed.Header().Get("Location")+"/pay", "", "Idempotency-Key: key-2"), "order-expired", "expired")
			wantReplay(t, placed, s.buy(t, "key-1", line("2")))
		}
		s.wantLevel(t, "mug", stock.Level{Supplied: 100, Available: 98, Sold: 2})
	})
}

// wantLife fails unless the answer is the order in this state.
func wantLife(t *testing.T, w *httptest.ResponseRecorder, status string) {
	t.Helper()
	wantStatus(t, w, http.StatusOK)
	if got := unmarshal[orderShown](t, w); got.Status != status {
		t.Errorf("got %+v, want it %s", got, status)
	}
}

// wantRefusal fails unless the answer is a 409 that tells the state.
func wantRefusal(t *testing.T, w *httptest.ResponseRecorder, slug, status string) {
	t.Helper()
	if p := wantProblem(t, w, "409 "+slug); p["order_status"] != status || p["retry_safe"] != false {
		t.Errorf("got %v, want order_status %s, not retry_safe", p, status)
	}
}

// "An order ends once: a request for another end is a 409 with its `order_status`; a repeated request for the same end
// returns the order again."
func TestEndOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "mug", 9)
	for _, c := range []struct{ how, other, status string }{{"/pay", "/cancel", "paid"}, {"/cancel", "/pay", "cancelled"}} {
		path := s.place(t, c.how, "2")
		wantLife(t, s.call(t, "GET "+path, ""), "pending")
		for range 2 {
			wantLife(t, s.call(t, "POST "+path+c.how, ""), c.status)
			wantLife(t, s.call(t, "GET "+path, ""), c.status)
			wantRefusal(t, s.call(t, "POST "+path+c.other, ""), "order-ended", c.status)
		}
	}
	late := s.place(t, "late", "2")
	storetest.Exec(t, s.db, "UPDATE orders SET expires_at = '2020-01-01 00:00:00.000000' WHERE status = 'pending'")
	for _, how := range []string{"/pay", "/cancel", "/pay"} {
		w := s.call(t, "POST "+late+how, "")
		wantRefusal(t, w, "order-expired", string(order.Expired))
		if !strings.Contains(w.Body.String(), "place a new order") {
			t.Errorf("got %s, want it to say what to do", w.Body)
		}
	}
	s.wantLevel(t, "mug", stock.Level{Supplied: 9, Available: 7, Sold: 2})
}

// "The request has no body; an empty object is also accepted." A chunked request without chunks has no
// body, whatever its Content-Type says.
func TestEndOrder_body(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "mug", 5)
	path := s.place(t, "key-1", "2")
	for _, c := range []struct {
		body, kind string
		want       int
	}{
		{`{"amount":1}`, "application/json", 400}, {"[]", "application/json", 400}, {"null", "application/json", 400},
		{"{", "application/json", 400}, {"{}{}", "application/json", 400}, {" ", "application/json", 400},
		{"{}" + strings.Repeat(" ", 64<<10-1), "application/json", 413}, {"{}", "text/plain", 415},
		{"amount=1", "application/x-www-form-urlencoded", 415}, {"{}", "", 415},
		{"", "", 200}, {"", "text/plain", 200}, {"{}", "application/json", 200}, {"{}" + strings.Repeat(" ", 64<<10-2), "application/json", 200},
	} {
		for _, chunked := range []bool{false, true} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path+"/pay", strings.NewReader(c.body))
			if chunked {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), -1
			}
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			if w := s.serve(t, s.handler, r); w.Code != c.want {
				t.Errorf("%.10q, %d bytes of %q, chunked %v: got %d %s, want %d", c.body, len(c.body), c.kind, chunked, w.Code, w.Body, c.want)
			}
			if c.want != http.StatusOK {
				wantLife(t, s.call(t, "GET "+path, ""), "pending")
			}
		}
	}
}

// "POST /v1/orders and a restock require a key; pay and cancel accept one." No other request of the
// buyer may have had the key.
func TestEndOrder_key(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "mug", 5)
	path, other := s.place(t, "key-1", "2"), s.place(t, "key-2", "2")
	const key = "Idempotency-Key: key-3"
	for _, how := range []string{"/pay", "/cancel"} {
		wantProblem(t, s.call(t, "POST "+path+how, "", withKey), "422 key-reused")
		wantProblem(t, s.call(t, "POST "+path+how, "", key, "Shop-Buyer: ann"), "404 order-not-found")
	}
	wantLife(t, s.call(t, "GET "+path, ""), "pending")
	wantLife(t, s.call(t, "POST "+path+"/pay", "", key), "paid")
	wantProblem(t, s.call(t, "POST "+path+"/cancel", "", key), "422 key-reused")
	wantProblem(t, s.call(t, "POST "+other+"/pay", "", key), "422 key-reused")
	wantProblem(t, s.buy(t, "key-3", line("2")), "422 key-reused")
	wantLife(t, s.call(t, "GET "+other, ""), "pending")
	s.wantLevel(t, "mug", stock.Level{Supplied: 5, Available: 1, Reserved: 2, Sold: 2})
}

// pages reads a whole list, a page after the other, and returns what of returns of each.
func pages[T any](
	t *testing.T, get func(query string) *httptest.ResponseRecorder, limit string,
	of func(page T) (items []string, next string),
) (all []string) {
	t.Helper()
	for cursor := ""; len(all) < 1000; {
		w := get("?limit=" + limit + "&cursor=" + cursor)
		wantStatus(t, w, http.StatusOK)
		items, next := of(unmarshal[T](t, w))
		all = append(all, items...)
		if cursor = next; cursor == "" {
			return all
		}
	}
	t.Fatalf("%d items and no end", len(all))
	return nil
}

type orderPage struct {
	Orders     []orderShown
	NextCursor string `json:"next_cursor"`
}

func (p orderPage) ids() (ids []string, next string) {
	for _, o := range p.Orders {
		ids = append(ids, o.ID+" "+o.Status)
	}
	return ids, p.NextCursor
}

// The buyer's own orders, the latest first, none left out and none twice, wherever the pages end. What is placed
// between two pages moves neither.
func TestListOrders(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "mug", 1000)
	const ann = "Shop-Buyer: ann"
	get := func(query string) *httptest.ResponseRecorder { return s.call(t, "GET /v1/orders"+query, "", ann) }
	var want []string
	for i := range 53 {
		path := s.place(t, fmt.Sprint("key-", i), "1", ann)
		want = append(want, strings.TrimPrefix(path, "/v1/orders/")+" pending")
		s.place(t, fmt.Sprint("key-", i), "1", "Shop-Buyer: bob")
	}
	slices.Reverse(want)
	for _, limit := range []string{"", "1", "52", "53", "54", "100"} {
		if got := pages(t, get, limit, orderPage.ids); !slices.Equal(got, want) {
			t.Errorf("limit %q: got %v, want %v", limit, got, want)
		}
	}
	first := unmarshal[orderPage](t, get("?limit=2"))
	s.place(t, "key-later", "1", ann)
	if got, _ := unmarshal[orderPage](t, get("?limit=2&cursor="+first.NextCursor)).ids(); !slices.Equal(got, want[2:4]) {
		t.Errorf("got %v, want %v", got, want[2:4])
	}
	for _, query := range []string{"", "?cursor=" + first.NextCursor} {
		if w := s.call(t, "GET /v1/orders"+query, "", "Shop-Buyer: cat"); w.Body.String() != "{\"orders\":[]}\n" {
			t.Errorf("%q: got %s, want none", query, w.Body)
		}
	}
	wantStatus(t, s.call(t, "HEAD /v1/orders", "", ann), http.StatusOK)
	// "A cursor has the name of its list, so that every other list refuses it".
	wantProblem(t, s.call(t, "GET /v1/skus?cursor="+first.NextCursor, ""), "400 malformed")
}

// One order too many is a 429, whose Retry-After is the time until the first pending order expires. Replays come first.
func TestPlaceOrder_tooManyOpen(t *testing.T) {
	t.Parallel()
	s := newInstance(t, instance{db: storetest.SQLite(t), locks: lock.NewMemory(), maxOpen: 1}, nil)
	s.supply(t, "mug", 5)
	first := s.buy(t, "key-1", goodOrder)
	rows := s.rows(t)
	w := s.buy(t, "key-2", goodOrder)
	p := wantProblem(t, w, "429 too-many-open")
	if p["retry_safe"] != true || !strings.Contains(fmt.Sprint(p["detail"]), "1 are pending, at most 1 are allowed; pay or cancel one") {
		t.Errorf("got %v, want it to be safe to ask again, and to say what to do", p)
	}
	if after := w.Header().Get("Retry-After"); len(after) != 3 { // of 900 s
		t.Errorf("got Retry-After %q, want what is left of 15 minutes", after)
	}
	if diff := cmp.Diff(rows, s.rows(t)); diff != "" {
		t.Errorf("rows changed:\n%s", diff)
	}
	wantReplay(t, first, s.buy(t, "key-1", goodOrder))
	wantLife(t, s.call(t, "POST "+first.Header().Get("Location")+"/pay", ""), "paid")
	wantStatus(t, s.buy(t, "key-2", goodOrder), http.StatusCreated)
}
