package orderhttp_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"example.com/shop/internal/stock"
)

type placed struct {
	ID     string `json:"id"`
	Buyer  string `json:"buyer"`
	Status string `json:"status"`
	Lines  []struct {
		SKU      string `json:"sku"`
		Quantity int64  `json:"quantity"`
		Price    money  `json:"price"`
	} `json:"lines"`
	Total     money     `json:"total"`
	CreatedAt time.Time `json:"created_at"`
}

type money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

func TestPlaceOrder_placed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	w := b.buy(t, "key-1", line("2"), "Shop-Buyer: ann")
	wantStatus(t, w, http.StatusCreated)
	var got placed
	unmarshal(t, w, &got)
	if id, err := uuid.Parse(got.ID); err != nil || id.Version() != 7 {
		t.Errorf("got id %q, want a UUIDv7", got.ID)
	}
	if location := w.Header().Get("Location"); location != "/v1/orders/"+got.ID {
		t.Errorf("got Location %q, want /v1/orders/%s", location, got.ID)
	}
	if w.Header().Get("Idempotent-Replayed") != "" {
		t.Error("got Idempotent-Replayed on the first answer")
	}
	if got.Buyer != "ann" || got.Status != "pending" || got.Total != (money{2500, "EUR"}) {
		t.Errorf("got %+v, want ann's pending order of 2500 EUR", got)
	}
	if len(got.Lines) != 1 || got.Lines[0].SKU != "mug" || got.Lines[0].Quantity != 2 || got.Lines[0].Price != (money{1250, "EUR"}) {
		t.Errorf("got lines %+v, want 2 mugs at 1250 EUR", got.Lines)
	}
	if age := time.Since(got.CreatedAt); age < 0 || age > time.Minute || got.CreatedAt.Location() != time.UTC {
		t.Errorf("got created_at %v, want now, in UTC", got.CreatedAt)
	}
	read := b.call(t, http.MethodGet, "/v1/orders/"+got.ID, "", "Shop-Buyer: ann")
	wantStatus(t, read, http.StatusOK)
	if diff := cmp.Diff(w.Body.String(), read.Body.String()); diff != "" {
		t.Errorf("placed and read differ:\n%s", diff)
	}
	b.wantClean(t)
}

// An order of several lines: one for each SKU, as the buyer wrote them, and their
// total.
func TestPlaceOrder_severalLines(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	b.supplyAt(t, stock.Money{Minor: 99, Currency: "EUR"}, "hat", 5)
	w := b.buy(t, "key-1", lines(`{"sku":"mug","quantity":1},{"sku":"hat","quantity":3},{"sku":"mug","quantity":2}`))
	wantStatus(t, w, http.StatusCreated)
	var got placed
	unmarshal(t, w, &got)
	if len(got.Lines) != 2 || got.Lines[0].SKU != "mug" || got.Lines[0].Quantity != 3 || got.Lines[1].SKU != "hat" || got.Lines[1].Quantity != 3 {
		t.Errorf("got lines %+v, want 3 mugs and 3 hats", got.Lines)
	}
	if want := (money{3*1250 + 3*99, "EUR"}); got.Total != want {
		t.Errorf("got total %v, want %v", got.Total, want)
	}
	again := b.buy(t, "key-1", lines(`{"sku":"mug","quantity":3},{"sku":"hat","quantity":3}`))
	wantStatus(t, again, http.StatusCreated)
	wantReplayOf(t, w, again)
	b.wantClean(t)
}

// Another buyer's order is 404, like one that does not exist.
func TestGetOrder_anotherBuyers(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	w := b.buy(t, "key-1", goodOrder) // by guest
	wantStatus(t, w, http.StatusCreated)
	target := w.Header().Get("Location")
	wantStatus(t, b.call(t, http.MethodGet, target, ""), http.StatusOK)
	wantStatus(t, b.call(t, http.MethodGet, target, "", "Shop-Buyer: guest"), http.StatusOK)
	for _, other := range []string{"Shop-Buyer: ann", "Shop-Buyer: Guest", "Shop-Buyer: ", "Shop-Buyer: '"} {
		wantProblem(t, b.call(t, http.MethodGet, target, "", other), http.StatusNotFound, "order-not-found")
	}
}

// The same key again gives the same answer, and takes no more units.
func TestPlaceOrder_replay(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 1)
	first := b.buy(t, "key-1", goodOrder)
	wantStatus(t, first, http.StatusCreated)
	for range 3 {
		again := b.buy(t, "key-1", ` {"lines": [{"quantity":1, "sku":"mug"}]}`)
		wantStatus(t, again, http.StatusCreated)
		wantReplayOf(t, first, again)
	}
	wantProblem(t, b.buy(t, "key-1", line("2")), http.StatusUnprocessableEntity, "key-reused")
	// The key is the buyer's own, and its letters count.
	wantProblem(t, b.buy(t, "key-1", goodOrder, "Shop-Buyer: ann"), http.StatusConflict, "sold-out")
	wantProblem(t, b.buy(t, "KEY-1", goodOrder), http.StatusConflict, "sold-out")
	b.wantClean(t)
}

func wantReplayOf(t *testing.T, first, again *httptest.ResponseRecorder) {
	t.Helper()
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

// 50 at once with one key make one order.
func TestPlaceOrder_manyAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 50)
	answers := make([]*httptest.ResponseRecorder, 50)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = b.buy(t, "key-1", goodOrder) })
	}
	wait.Wait()
	ids := map[string]bool{}
	for _, w := range answers {
		if w.Code == http.StatusConflict {
			wantProblem(t, w, http.StatusConflict, "in-progress")
			continue
		}
		wantStatus(t, w, http.StatusCreated)
		ids[w.Header().Get("Location")] = true
	}
	if len(ids) != 1 {
		t.Errorf("got orders %v, want one", ids)
	}
	sku, err := b.stock.SKU(t.Context(), "mug")
	if err != nil || sku.Level.Available != 49 {
		t.Errorf("got %+v, %v, want 49 available", sku.Level, err)
	}
	b.wantClean(t)
}
