package orderhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"example.com/shop/internal/order"
)

// mugs is more than any fuzz target sells in its minute.
const mugs = 1_000_000_000

// FuzzPlaceOrder_body: "Bad input never is a 5xx", and what was sold is what the
// body says, read by somebody else.
func FuzzPlaceOrder_body(f *testing.F) {
	for _, body := range []string{
		"", "{}", goodOrder, line("1000"), line("1001"), line("-1"), line("1e400"), line("1.0"), line("NaN"), line(`"1"`),
		`{"lines":[{"sku":"mug","quantity":1},{"sku":"mug","quantity":2}]}`, `{"lines":[{"sku":"cup","quantity":1}]}`,
		lines(`{"sku":"mug","quantity":1},{"sku":"hat","quantity":2}`),
		goodOrder + goodOrder, `{"lines":null}`, "\ufeff" + goodOrder, strings.Repeat(`{"lines":`, 9) + strings.Repeat("}", 9),
	} {
		f.Add(body)
	}
	b := setup(f, nil)
	b.supply(f, "mug", mugs)
	keys := 0
	f.Fuzz(func(t *testing.T, body string) {
		keys++
		w := b.buy(t, fmt.Sprint("key", keys), body)
		if refused(t, w) {
			return
		}
		var got, want struct {
			Lines []struct {
				SKU      string
				Quantity int64
			}
		}
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatalf("sold for %q, which is no JSON: %v", body, err)
		}
		unmarshal(t, w, &got)
		sold, ordered := int64(0), int64(0)
		for _, l := range got.Lines {
			sold += l.Quantity
		}
		for _, l := range want.Lines {
			ordered += l.Quantity
			if l.SKU != "mug" {
				t.Errorf("sold %q of %q, which nobody has", l.SKU, body)
			}
		}
		if sold != ordered || sold < 1 {
			t.Errorf("sold %d units for %q, want %d", sold, body, ordered)
		}
	})
}

// usableKey is what an idempotency key is: printable ASCII.
var usableKey = regexp.MustCompile(fmt.Sprintf(`^[ -~]{1,%d}$`, order.MaxKey))

// FuzzPlaceOrder_key: a key is printable ASCII of bounded length, or a 400; and
// with one that is, the same order is answered again.
func FuzzPlaceOrder_key(f *testing.F) {
	for _, key := range []string{"", "k", "a b", " ", "k\x00", "k\n", "ключ", "\xff", strings.Repeat("k", order.MaxKey), strings.Repeat("k", order.MaxKey+1)} {
		f.Add(key)
	}
	b := setup(f, nil)
	b.supply(f, "mug", mugs)
	f.Fuzz(func(t *testing.T, key string) {
		place := func() *httptest.ResponseRecorder {
			return b.call(t, http.MethodPost, "/v1/orders", goodOrder, asJSON, "Idempotency-Key: "+key)
		}
		first := place()
		if ok := !refused(t, first); ok != usableKey.MatchString(key) {
			t.Fatalf("key %q: status %d", key, first.Code)
		} else if !ok {
			return
		}
		again := place()
		if again.Code != first.Code || again.Body.String() != first.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("key %q: %d %s, then %d %s", key, first.Code, first.Body, again.Code, again.Body)
		}
	})
}

// FuzzCursor: a cursor that no page of a list gave is a 400 there, or begins a page
// like any other; and no cursor is good for both lists.
func FuzzCursor(f *testing.F) {
	for _, cursor := range []string{
		"", "bXVn", "bXVn=", "bXV", "%", "////", "_-_-", "AAAA", strings.Repeat("A", 10_000),
		"c2t1MTptdWctMQ", "b3JkZXIxOjAxOTBkMGMwLTAwMDAtNzAwMC04MDAwLTAwMDAwMDAwMDAwMA",
	} {
		f.Add(cursor)
	}
	b := setup(f, nil)
	for i := range 5 {
		b.supply(f, fmt.Sprint("mug-", i), 1)
		order := strings.Replace(goodOrder, "mug", fmt.Sprint("mug-", i), 1)
		b.call(f, http.MethodPost, "/v1/orders", order, asJSON, fmt.Sprint("Idempotency-Key: key-", i))
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		read := 0
		for _, list := range []string{"/v1/skus", "/v1/orders"} {
			w := b.call(t, http.MethodGet, list+"?limit=2&cursor="+url.QueryEscape(cursor), "")
			if refused(t, w) {
				continue
			}
			read++
			var page struct {
				SKUs   []json.RawMessage `json:"skus"`
				Orders []json.RawMessage `json:"orders"`
			}
			unmarshal(t, w, &page)
			if shown := len(page.SKUs) + len(page.Orders); shown > 2 {
				t.Errorf("%s, cursor %q: a page of %d, want at most 2", list, cursor, shown)
			}
		}
		if read == 2 && cursor != "" {
			t.Errorf("cursor %q is good for two lists", cursor)
		}
	})
}

// refused reports whether the answer is a 4xx, and fails for any that is neither
// that nor a success.
func refused(t *testing.T, w *httptest.ResponseRecorder) bool {
	t.Helper()
	switch {
	case w.Code >= 400 && w.Code < 500:
		wantStatus(t, w, w.Code) // a problem, and complete
		return true
	case w.Code != http.StatusOK && w.Code != http.StatusCreated:
		t.Fatalf("got %d %s, want a success or a 4xx", w.Code, w.Body)
	}
	return false
}
