package orderhttp_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
)

func TestLab_strategies(t *testing.T) {
	t.Parallel()
	b := setup(t, lab)
	w := b.call(t, http.MethodGet, "/v1/strategies", "")
	wantStatus(t, w, http.StatusOK)
	var got struct {
		Strategies []struct {
			Name            string `json:"name"`
			Lock            string `json:"lock"`
			Take            string `json:"take"`
			PromisesCorrect bool   `json:"promises_correct"`
			Lesson          string `json:"lesson"`
			Available       bool   `json:"available"`
			Reason          string `json:"reason"`
		} `json:"strategies"`
		Database string `json:"database"`
		Redis    string `json:"redis"`
	}
	unmarshal(t, w, &got)
	if got.Database != "SQLite 3" || got.Redis != "none" {
		t.Errorf("servers: got %q, %q, want those of the Config", got.Database, got.Redis)
	}
	table := order.Strategies()
	if len(got.Strategies) != len(table) {
		t.Fatalf("got %d strategies, want %d", len(got.Strategies), len(table))
	}
	for i, s := range table {
		row := got.Strategies[i]
		if row.Name != s.Name || row.Lock != s.Lock || row.Take != string(s.Take) ||
			row.PromisesCorrect != s.Promises || row.Lesson != s.Lesson {
			t.Errorf("got %+v, want %+v", row, s)
		}
	}
	b.supply(t, "mug", 50)
	missing := 0
	for i, s := range table {
		w := b.buy(t, "by-"+s.Name, goodOrder, "Shop-Strategy: "+s.Name, "Shop-Think: 1ms")
		row := got.Strategies[i]
		if row.Available != (row.Reason == "") {
			t.Errorf("%s: available %v, because %q", s.Name, row.Available, row.Reason)
		}
		if row.Available {
			wantStatus(t, w, http.StatusCreated)
			continue
		}
		missing++
		if p := wantProblem(t, w, http.StatusBadRequest, "missing-strategy"); !strings.Contains(p["detail"].(string), row.Reason) {
			t.Errorf("%s: got %v, want the reason %q in it", s.Name, p, row.Reason)
		}
	}
	if missing == 0 || missing == len(table) {
		t.Errorf("%d of %d are missing, want some", missing, len(table))
	}
	b.wantClean(t)
}

func TestLab_createSKU(t *testing.T) {
	b := setup(t, lab)
	create := func(body string) (status int, slug string) {
		t.Helper()
		w := b.call(t, http.MethodPost, "/v1/skus", body, asJSON)
		if w.Code < 400 {
			return w.Code, w.Header().Get("Location")
		}
		var p struct{ Type string }
		unmarshal(t, w, &p)
		return w.Code, strings.TrimPrefix(p.Type, "/problems/")
	}
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"new", `{"sku":"mug","price":{"minor":1250,"currency":"EUR"},"units":5}`, 201, "/v1/skus/mug"},
		{"again", `{"sku":"mug","price":{"minor":1250,"currency":"EUR"},"units":5}`, 409, "sku-exists"},
		{"free and empty", `{"sku":"leaflet","price":{"minor":0,"currency":"EUR"},"units":0}`, 201, "/v1/skus/leaflet"},
		{"no name", `{"price":{"minor":1250,"currency":"EUR"},"units":5}`, 422, "invalid-sku"},
		{"bad name", `{"sku":"My Mug","price":{"minor":1250,"currency":"EUR"},"units":5}`, 422, "invalid-sku"},
		{"no price", `{"sku":"pen","units":5}`, 201, "/v1/skus/pen"},
		{"no minor", `{"sku":"cup","price":{"currency":"EUR"},"units":5}`, 422, "invalid-sku"},
		{"no currency", `{"sku":"cup","price":{"minor":1250},"units":5}`, 422, "invalid-sku"},
		{"price negative", `{"sku":"cup","price":{"minor":-1,"currency":"EUR"},"units":5}`, 422, "invalid-sku"},
		{"price huge", `{"sku":"cup","price":{"minor":99999999999999999999,"currency":"EUR"},"units":5}`, 422, "invalid-sku"},
		{"price float", `{"sku":"cup","price":{"minor":12.5,"currency":"EUR"},"units":5}`, 400, "malformed"},
		{"price number", `{"sku":"cup","price":1250,"units":5}`, 400, "malformed"},
		{"currency", `{"sku":"cup","price":{"minor":1,"currency":"euro"},"units":5}`, 422, "invalid-sku"},
		{"units negative", `{"sku":"cup","price":{"minor":1,"currency":"EUR"},"units":-1}`, 422, "invalid-sku"},
		{"units huge", `{"sku":"cup","price":{"minor":1,"currency":"EUR"},"units":1000000001}`, 422, "invalid-sku"},
		{"units null", `{"sku":"cup","price":{"minor":1,"currency":"EUR"},"units":null}`, 400, "malformed"},
		{"unknown field", `{"sku":"cup","price":{"minor":1,"currency":"EUR"},"units":1,"sold":1}`, 400, "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, got := create(c.body); status != c.status || got != c.want {
				t.Errorf("got %d %s, want %d %s", status, got, c.status, c.want)
			}
		})
	}
	b.wantUntouched(t, "mug", 5)
	if pen, err := b.stock.SKU(t.Context(), "pen"); err != nil || pen.Price.String() != "10.00 EUR" {
		t.Errorf("got price %v, %v, want 10.00 EUR", pen.Price, err)
	}
	wantProblem(t, b.call(t, http.MethodGet, "/v1/skus/cup", ""), http.StatusNotFound, "sku-not-found")
}

// What is the operator's is not on the buyers' listener of a shop that sells, not
// even as a method that it would take.
func TestLab_off(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*orderhttp.Config)
		allow  string
	}{"off": {nil, "GET, HEAD"}, "on": {lab, "POST, GET, HEAD"}} {
		w := setup(t, c.change).call(t, http.MethodDelete, "/v1/skus", "")
		wantProblem(t, w, http.StatusMethodNotAllowed, "method-not-allowed")
		if got := w.Header().Get("Allow"); got != c.allow {
			t.Errorf("%s: got Allow %q, want %q", name, got, c.allow)
		}
	}
}
