package orderhttp_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
)

// withMaxOpen is a shop where a buyer may have so many pending orders.
func withMaxOpen(t *testing.T, open int) *bundle {
	t.Helper()
	b := setup(t, nil)
	locker := lock.New(lock.NewMemory(), lock.Options{})
	t.Cleanup(func() { _ = locker.Close() })
	lockers := map[string]order.Locker{order.RedisLock: locker, order.MemoryLock: locker}
	service, err := order.New(order.Config{
		Store: b.orders, Stock: b.stock, MaxOpen: open,
		Lockers: lockers, Missing: without(lockers),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.config.Orders = service
	if b.handler, err = orderhttp.New(b.config); err != nil {
		t.Fatal(err)
	}
	return b
}

// "One order too many is a 429, whose Retry-After is the time until the first
// pending order expires. Replays come first."
func TestPlaceOrder_tooManyOpen(t *testing.T) {
	t.Parallel()
	b := withMaxOpen(t, 1)
	b.supply(t, "mug", 5)
	first := b.buy(t, "key-1", goodOrder)
	wantStatus(t, first, http.StatusCreated)
	rows := b.allRows(t)
	w := b.buy(t, "key-2", goodOrder)
	problem := wantProblem(t, w, http.StatusTooManyRequests, "too-many-open")
	if problem["retry_safe"] != true || !strings.Contains(fmt.Sprint(problem["detail"]), "1 are pending, at most 1 are allowed; pay or cancel one") {
		t.Errorf("got %v, want it to be safe to ask again, and to say what to do", problem)
	}
	after, err := strconv.Atoi(w.Header().Get("Retry-After"))
	if most := int(order.DefaultHold.Seconds()); err != nil || after > most || after < most/2 {
		t.Errorf("got Retry-After %q, want what is left of %d s", w.Header().Get("Retry-After"), most)
	}
	if diff := cmp.Diff(rows, b.allRows(t)); diff != "" {
		t.Errorf("rows changed:\n%s", diff)
	}
	again := b.buy(t, "key-1", goodOrder)
	wantStatus(t, again, http.StatusCreated)
	if again.Body.String() != first.Body.String() {
		t.Errorf("replay: got %s, want %s", again.Body, first.Body)
	}
	wantStatus(t, b.call(t, http.MethodPost, first.Header().Get("Location")+"/pay", ""), http.StatusOK)
	wantStatus(t, b.buy(t, "key-2", goodOrder), http.StatusCreated)
}

// "Retry-After is at most an hour", and at least a second.
func TestPlaceOrder_retryAfter(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		-time.Minute: "1", 0: "1", time.Second: "1", time.Second + 1: "2", time.Hour: "3600", 1<<63 - 1: "3600",
	} {
		b := setup(t, func(config *orderhttp.Config) { config.Orders = broken{&order.OpenError{Open: 1, Max: 1, Wait: wait}} })
		w := b.buy(t, "key-1", goodOrder)
		wantProblem(t, w, http.StatusTooManyRequests, "too-many-open")
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%v: got Retry-After %s, want %s", wait, got, want)
		}
	}
}

// The operator limits a SKU when it is created and later, buyers see it, and one
// unit too many "is a 409, as sold out is".
func TestPlaceOrder_purchaseLimit(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	const cup, limited = "/v1/skus/cup", `"sold":0,"limit_per_buyer":2}`
	w := b.operate(t, http.MethodPost, "/v1/skus", strings.Replace(newSKU, `"units"`, `"limit_per_buyer":2,"units"`, 1), asJSON)
	wantStatus(t, w, http.StatusCreated)
	if !strings.Contains(w.Body.String(), limited) {
		t.Errorf("got %s, want the limit in it", w.Body)
	}
	for _, list := range []string{cup, "/v1/skus"} {
		if w := b.call(t, http.MethodGet, list, ""); !strings.Contains(w.Body.String(), limited) {
			t.Errorf("%s: got %s, want the limit in it", list, w.Body)
		}
	}
	cups := func(units string) string { return strings.ReplaceAll(line(units), "mug", "cup") }
	rows := b.allRows(t)
	problem := wantProblem(t, b.buy(t, "key-1", cups("3")), http.StatusConflict, "purchase-limit")
	if detail := fmt.Sprint(problem["detail"]); problem["retry_safe"] != false || !strings.Contains(detail, `"cup"`) || !strings.Contains(detail, "2 for each buyer, 2 of them left") {
		t.Errorf("got %v, want the SKU and what is left to buy", problem)
	}
	if diff := cmp.Diff(rows, b.allRows(t)); diff != "" {
		t.Errorf("rows changed:\n%s", diff)
	}
	wantStatus(t, b.buy(t, "key-1", cups("2")), http.StatusCreated)
	restock := func() string {
		return b.operate(t, http.MethodPost, cup+"/movements", moreMugs, asJSON, "Idempotency-Key: key-1").Body.String()
	}
	first := restock()

	wantStatus(t, b.operate(t, http.MethodPatch, cup, `{"limit_per_buyer":3}`, asJSON), http.StatusOK)
	wantProblem(t, b.buy(t, "key-2", cups("2")), http.StatusConflict, "purchase-limit")
	w = b.operate(t, http.MethodPatch, cup, `{"limit_per_buyer":0}`, asJSON)
	wantStatus(t, w, http.StatusOK)
	if strings.Contains(w.Body.String(), "limit_per_buyer") {
		t.Errorf("got %s, want no limit", w.Body)
	}
	wantStatus(t, b.buy(t, "key-2", cups("2")), http.StatusCreated)
	if again := restock(); again != first {
		t.Errorf("a restock's replay: got %s, want %s, whatever became of the limit", again, first)
	}
	b.wantClean(t)
}
