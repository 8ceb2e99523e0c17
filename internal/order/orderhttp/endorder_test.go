package orderhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/order"
)

type lived struct {
	ID        string    `json:"id"`
	Status    string    `json:"status"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// place orders and returns the order's path.
func (b *bundle) place(t *testing.T, key, quantity string) (path string, answer *httptest.ResponseRecorder) {
	t.Helper()
	w := b.buy(t, key, line(quantity))
	wantStatus(t, w, http.StatusCreated)
	return w.Header().Get("Location"), w
}

func (b *bundle) end(t *testing.T, path, how string) *httptest.ResponseRecorder {
	t.Helper()
	return b.call(t, http.MethodPost, path+"/"+how, "")
}

// wantLife fails unless the answer is the order in this state.
func wantLife(t *testing.T, w *httptest.ResponseRecorder, status string) {
	t.Helper()
	wantStatus(t, w, http.StatusOK)
	var got lived
	unmarshal(t, w, &got)
	if got.Status != status || got.ExpiresAt.Sub(got.CreatedAt) != 15*time.Minute {
		t.Errorf("got %+v, want it %s, expiring after 15 minutes", got, status)
	}
}

// wantRefusal fails unless the answer is a 409 that tells the state.
func wantRefusal(t *testing.T, w *httptest.ResponseRecorder, slug, status string) {
	t.Helper()
	problem := wantProblem(t, w, http.StatusConflict, slug)
	if problem["order_status"] != status || problem["retry_safe"] != false {
		t.Errorf("got %v, want order_status %s, not retry_safe", problem, status)
	}
}

// "Asking again for the end that it has come to is answered with the order; for
// another end, it is a 409 whose order_status is the one it has."
func TestEndOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ how, other, status string }{{"pay", "cancel", "paid"}, {"cancel", "pay", "cancelled"}} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			b.supply(t, "mug", 5)
			path, first := b.place(t, "key-1", "2")
			wantLife(t, b.call(t, http.MethodGet, path, ""), "pending")
			for range 2 {
				wantLife(t, b.end(t, path, c.how), c.status)
				wantLife(t, b.call(t, http.MethodGet, path, ""), c.status)
				wantRefusal(t, b.end(t, path, c.other), "order-ended", c.status)
			}
			// "The answer shows the order as it was placed, also when it is replayed."
			wantReplayOf(t, first, b.buy(t, "key-1", line("2")))
			b.wantClean(t)
		})
	}
}

// "An order is pending until expires_at, then expired": paying it late is refused
// with words for people.
func TestEndOrder_late(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	path, _ := b.place(t, "key-1", "2")
	if err := b.db.Exec("UPDATE orders SET expires_at = '2020-01-01 00:00:00.000000'").Error; err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"pay", "cancel", "pay"} {
		w := b.end(t, path, how)
		wantRefusal(t, w, "order-expired", string(order.Expired))
		if !strings.Contains(w.Body.String(), "place a new order") {
			t.Errorf("got %s, want it to say what to do", w.Body)
		}
	}
	b.wantUntouched(t, "mug", 5)
}

// Another buyer's order is 404, and so is what is no order.
func TestEndOrder_anotherBuyers(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	path, _ := b.place(t, "key-1", "2")
	for _, how := range []string{"/pay", "/cancel"} {
		wantProblem(t, b.call(t, http.MethodPost, path+how, "", "Shop-Buyer: ann"), http.StatusNotFound, "order-not-found")
		for _, id := range []string{"1", "0190d0c0-0000-7000-8000-000000000000", strings.ToUpper(strings.TrimPrefix(path, "/v1/orders/")), "%00"} {
			wantProblem(t, b.call(t, http.MethodPost, "/v1/orders/"+id+how, ""), http.StatusNotFound, "order-not-found")
		}
		wantProblem(t, b.call(t, http.MethodGet, path+how, ""), http.StatusMethodNotAllowed, "method-not-allowed")
	}
	wantLife(t, b.call(t, http.MethodGet, path, ""), "pending")
	b.wantClean(t)
}

// "Pay and cancel take no body"; an empty object is none.
func TestEndOrder_body(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	path, _ := b.place(t, "key-1", "2")
	for body, want := range map[string]int{
		`{"amount":1}`: 400, `[]`: 400, `null`: 400, `{`: 400, `pay`: 400, `"`: 400, `{"a":1e400}`: 400, `{}{}`: 400,
		strings.Repeat(" ", 70_000): 413,
	} {
		slug := map[int]string{400: "malformed", 413: "too-large"}[want]
		wantProblem(t, b.call(t, http.MethodPost, path+"/pay", body, asJSON), want, slug)
	}
	wantProblem(t, b.call(t, http.MethodPost, path+"/pay", "amount=1", "Content-Type: application/x-www-form-urlencoded"), 415, "media-type")
	wantLife(t, b.call(t, http.MethodGet, path, ""), "pending")
	wantLife(t, b.call(t, http.MethodPost, path+"/pay", "{}", asJSON), "paid")
	b.wantClean(t)
}

// A chunked request of no chunk has no body, whatever its Content-Type says; where
// there are chunks, they are read as any body is.
func TestEndOrder_chunked(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	path, _ := b.place(t, "key-1", "2")
	for _, c := range []struct {
		body, kind string
		status     int
	}{
		{"", "", 200},
		{"", "application/json", 200},
		{"", "text/plain", 200},
		{"{}", "application/json", 200},
		{"{}", "text/plain", 415},
		{`{"a":1}`, "application/json", 400},
		{"{", "application/json", 400},
		{" ", "application/json", 400},
		{"{}" + strings.Repeat(" ", 64<<10-2), "application/json", 200},
		{"{}" + strings.Repeat(" ", 64<<10-1), "application/json", 413},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path+"/pay", io.NopCloser(strings.NewReader(c.body)))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c.body)), nil }
		if c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		if w := b.serve(t, b.handler, r); w.Code != c.status {
			t.Errorf("%.10q, %d bytes of %q: got %d %s, want %d", c.body, len(c.body), c.kind, w.Code, w.Body, c.status)
		}
	}
	b.wantClean(t)
}

// "POST /v1/orders wants a key; pay and cancel take one", under the same rules.
func TestEndOrder_key(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	path, _ := b.place(t, "key-1", "2")
	other, _ := b.place(t, "key-2", "2")
	for name, c := range map[string]struct {
		headers []string
		status  int
		slug    string
	}{
		"empty":         {[]string{"Idempotency-Key: "}, 400, "key-missing"},
		"long":          {[]string{"Idempotency-Key: " + strings.Repeat("k", 256)}, 400, "key-invalid"},
		"not ASCII":     {[]string{"Idempotency-Key: schlüssel"}, 400, "key-invalid"},
		"two":           {[]string{"Idempotency-Key: a", "Idempotency-Key: b"}, 400, "malformed"},
		"of an order":   {[]string{"Idempotency-Key: key-1"}, 422, "key-reused"},
		"another buyer": {[]string{"Idempotency-Key: key-3", "Shop-Buyer: ann"}, 404, "order-not-found"},
	} {
		for _, how := range []string{"/pay", "/cancel"} {
			if problem := wantProblem(t, b.call(t, http.MethodPost, path+how, "", c.headers...), c.status, c.slug); problem["retry_safe"] != false {
				t.Errorf("%s: got %v, want it not retry_safe", name, problem)
			}
		}
	}
	wantLife(t, b.call(t, http.MethodGet, path, ""), "pending")
	const key = "Idempotency-Key: key-3"
	wantLife(t, b.call(t, http.MethodPost, path+"/pay", "", key), "paid")
	wantProblem(t, b.call(t, http.MethodPost, path+"/cancel", "", key), 422, "key-reused")
	wantProblem(t, b.call(t, http.MethodPost, other+"/pay", "", key), 422, "key-reused")
	wantProblem(t, b.buy(t, "key-3", line("2")), 422, "key-reused")
	wantLife(t, b.call(t, http.MethodGet, other, ""), "pending")
	b.wantClean(t)
}
