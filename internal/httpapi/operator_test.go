package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/stock"
)

const (
	newSKU     = `{"sku":"cup","price":{"minor":1250,"currency":"EUR"},"units":5}`
	moreMugs   = `{"kind":"supply","units":5}`
	movesOfMug = "/v1/skus/mug/movements"
)

// delivered returns a delivery of this many units.
func delivered(units string) string { return `{"kind":"supply","units":` + units + `}` }

// The operator's API answers requests that other tests do not send. The operator's token opens nothing of the buyers'.
func TestOperator(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(c *httpapi.Config) {
		withTokens(t)(c)
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_, _ = w.Write([]byte("orders 1\n"))
		})
	})
	for call, want := range map[string]int{
		"GET /debug/pprof/": 200, "GET /debug/pprof/heap": 200, "GET /debug/pprof/goroutine?debug=1": 200, "GET /debug/pprof/symbol": 200,
		"GET /healthz?from=balancer": 200, "GET /debug/pprof/heap?seconds=never": 400, "GET /metrics": 200,
	} {
		if w := s.operate(t, call, ""); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", call, w.Code, w.Body, want)
		}
	}
	wantStatus(t, s.callOn(t, s.operator, "GET /healthz", ""), http.StatusOK) // to every client
	wantProblem(t, s.buy(t, "key-1", goodOrder, asOperator), "401 bad-token")
}

// The same delivery again is answered byte for byte as before, also when units were sold meanwhile. The ledger tells of
// it.
func TestRestock(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "cup", 1)
	s.supply(t, "mug", 1)
	restock := func(key, body string) *httptest.ResponseRecorder {
		return s.operate(t, "POST "+movesOfMug, body, "Idempotency-Key: "+key)
	}
	first := restock("key-1", moreMugs)
	wantStatus(t, first, http.StatusCreated)
	want := `{"sku":"mug","price":{"minor":1250,"currency":"EUR"},"supplied":6,"available":6,"reserved":0,"sold":0}` + "\n"
	if first.Body.String() != want || first.Header().Get("Idempotent-Replayed") != "" {
		t.Errorf("got %s, replayed %q; want %s", first.Body, first.Header().Get("Idempotent-Replayed"), want)
	}
	s.place(t, "key-1", "2")
	wantReplay(t, first, restock("key-1", moreMugs))
	wantProblem(t, restock("key-1", delivered("6")), "422 key-reused")
	wantStatus(t, restock("key-2", moreMugs), http.StatusCreated)
	s.wantLevel(t, "mug", stock.Level{Supplied: 11, Available: 9, Reserved: 2})

	type movementPage struct {
		Movements []struct {
			ID, Kind                            string
			OrderID                             string `json:"order_id"`
			Supplied, Available, Reserved, Sold int64
			CreatedAt                           string `json:"created_at"`
		}
		NextCursor string `json:"next_cursor"`
	}
	of := func(p movementPage) (all []string, next string) {
		for _, m := range p.Movements {
			all = append(all, fmt.Sprintf("%s %d %d %d %d", m.Kind, m.Supplied, m.Available, m.Reserved, m.Sold))
			if (m.OrderID != "") != (m.Kind == "reserve") || m.ID == "" || !strings.HasSuffix(m.CreatedAt, "Z") {
				t.Errorf("got %+v, want an id, a time in UTC, and an order only where one moved units", m)
			}
		}
		return all, p.NextCursor
	}
	get := func(query string) *httptest.ResponseRecorder { return s.operate(t, "GET "+movesOfMug+query, "") }
	ledger := []string{"supply 1 1 0 0", "supply 5 5 0 0", "reserve 0 -2 2 0", "supply 5 5 0 0"}
	for _, limit := range []string{"1", "3", "4", "5", ""} {
		if got := pages(t, get, limit, of); !slices.Equal(got, ledger) {
			t.Errorf("limit %q: got %v, want %v", limit, got, ledger)
		}
	}
}

// The operator limits a SKU when it is created and later, buyers see it, and one unit too many is a 409.
func TestSKUs(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	const cup, limited = "/v1/skus/cup", `"sold":0,"limit_per_buyer":2}`
	w := s.operate(t, "POST /v1/skus", strings.Replace(newSKU, `"units"`, `"limit_per_buyer":2,"units"`, 1))
	wantStatus(t, w, http.StatusCreated)
	if !strings.Contains(w.Body.String(), limited) || w.Header().Get("Location") != cup {
		t.Errorf("got %s at %s, want the limit in it", w.Body, w.Header().Get("Location"))
	}
	for _, list := range []string{cup, "/v1/skus"} {
		if w := s.call(t, "GET "+list, ""); !strings.Contains(w.Body.String(), limited) {
			t.Errorf("%s: got %s, want the limit in it", list, w.Body)
		}
	}
	cups := func(units string) string { return strings.ReplaceAll(line(units), "mug", "cup") }
	p := wantProblem(t, s.buy(t, "key-1", cups("3")), "409 purchase-limit")
	if detail := fmt.Sprint(p["detail"]); p["retry_safe"] != false || !strings.Contains(detail, `"cup"`) ||
		!strings.Contains(detail, "2 for each buyer, 2 of them left") {
		t.Errorf("got %v, want the SKU and what is left to buy", p)
	}
	wantStatus(t, s.buy(t, "key-1", cups("2")), http.StatusCreated)
	restock := func() string {
		return s.operate(t, "POST "+cup+"/movements", moreMugs, withKey).Body.String()
	}
	first := restock()
	wantStatus(t, s.operate(t, "PATCH "+cup, `{"limit_per_buyer":3}`), http.StatusOK)
	wantProblem(t, s.buy(t, "key-2", cups("2")), "409 purchase-limit")
	if w := s.operate(t, "PATCH "+cup, `{"limit_per_buyer":0}`); w.Code != http.StatusOK ||
		strings.Contains(w.Body.String(), "limit_per_buyer") {
		t.Errorf("got %d %s, want no limit", w.Code, w.Body)
	}
	wantStatus(t, s.buy(t, "key-2", cups("2")), http.StatusCreated)
	if again := restock(); again != first {
		t.Errorf("a restock's replay: got %s, want %s, whatever became of the limit", again, first)
	}
	s.wantLevel(t, "cup", stock.Level{Supplied: 10, Available: 6, Reserved: 4})
}

// The list of SKUs, by name, wherever its pages end.
func TestListSKUs(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	if w := s.call(t, "GET /v1/skus", ""); w.Body.String() != "{\"skus\":[]}\n" {
		t.Errorf("got %s, want none", w.Body)
	}
	want := []string{"cup", "hat", "mug", "pen"}
	for _, name := range want {
		s.supply(t, name, 1)
	}
	type skuPage struct {
		SKUs       []struct{ SKU string }
		NextCursor string `json:"next_cursor"`
	}
	get := func(query string) *httptest.ResponseRecorder { return s.call(t, "GET /v1/skus"+query, "") }
	for _, limit := range []string{"", "1", "3", "4"} {
		got := pages(t, get, limit, func(p skuPage) (names []string, next string) {
			for _, sku := range p.SKUs {
				names = append(names, sku.SKU)
			}
			return names, p.NextCursor
		})
		if !slices.Equal(got, want) {
			t.Errorf("limit %q: got %v, want %v", limit, got, want)
		}
	}
}

// badBooks is a stock whose audit has a number of SKUs and differences.
type badBooks struct {
	httpapi.Store
	skus, differences int
}

func (a badBooks) Audit(_ context.Context, _ string, account func(stock.Account) error, difference func(stock.Difference) error) error {
	for i := range a.skus {
		_ = account(stock.Account{SKU: fmt.Sprint(i), OrderedUnits: 3, Level: stock.Level{Supplied: 1}})
	}
	for range a.differences {
		_ = difference(stock.Difference{Invariant: "I5", OrderID: "1", Detail: "no movement"})
	}
	return nil
}

// Differences are the audit's result, not its failure; a report lists a thousand.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "cup", 7)
	s.supply(t, "mug", 5)
	s.place(t, "key-1", "2")
	const mug = `{"sku":"mug","supplied":5,"available":3,"reserved":2,"sold":0,"orders":1,"ordered_units":2,"oversold":0}`
	const cup = `{"sku":"cup","supplied":7,"available":7,"reserved":0,"sold":0,"orders":0,"ordered_units":0,"oversold":0}`
	for query, skus := range map[string]string{"": cup + "," + mug, "?sku=mug": mug} {
		want := `{"ok":true,"skus":[` + skus + `],"differences":[],"truncated":false}` + "\n"
		if w := s.operate(t, "GET /v1/audit"+query, ""); w.Body.String() != want {
			t.Errorf("%s: got %s, want %s", query, w.Body, want)
		}
	}
	if w := s.operate(t, "GET /v1/audit?sku=", ""); w.Code != http.StatusNotFound {
		t.Errorf("an empty SKU: got %d, want 404: it is not all of them", w.Code)
	}
	type report struct {
		OK, Truncated bool
		SKUs          []struct{ Oversold int }
		Differences   []struct{ Invariant string }
	}
	for _, c := range []struct {
		books       badBooks
		skus, found int
		truncated   bool
	}{
		{badBooks{nil, 1, 1}, 1, 1, false}, {badBooks{nil, 1_000, 1_000}, 1_000, 1_000, false},
		{badBooks{nil, 1_001, 1}, 1_000, 1, true}, {badBooks{nil, 1, 1_001}, 1, 1_000, true},
	} {
		bad := newShop(t, func(config *httpapi.Config) { config.Store = c.books })
		got := unmarshal[report](t, bad.operate(t, "GET /v1/audit", ""))
		if got.OK || len(got.SKUs) != c.skus || len(got.Differences) != c.found || got.Truncated != c.truncated || got.SKUs[0].Oversold != 2 {
			t.Errorf("%+v: got ok %v, %d SKUs, %d differences, truncated %v", c, got.OK, len(got.SKUs), len(got.Differences), got.Truncated)
		}
	}
}
