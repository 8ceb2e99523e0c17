package orderhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// contextOfServer is that of a request which a server answers.
func contextOfServer(t *testing.T, server *http.Server) context.Context {
	t.Helper()
	return context.WithValue(t.Context(), http.ServerContextKey, server)
}

// restock sends a delivery of mugs.
func (b *bundle) restock(t *testing.T, key, body string) *httptest.ResponseRecorder {
	t.Helper()
	return b.operate(t, http.MethodPost, movesOfMug, body, asJSON, "Idempotency-Key: "+key)
}

// The same delivery again is answered byte for byte as before, also when units
// were sold meanwhile.
func TestRestock(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 1)
	first := b.restock(t, "key-1", moreMugs)
	wantStatus(t, first, http.StatusCreated)
	want := `{"sku":"mug","price":{"minor":1250,"currency":"EUR"},"supplied":6,"available":6,"reserved":0,"sold":0}` + "\n"
	if first.Body.String() != want || first.Header().Get("Idempotent-Replayed") != "" {
		t.Errorf("got %s, replayed %q; want %s", first.Body, first.Header().Get("Idempotent-Replayed"), want)
	}
	wantStatus(t, b.buy(t, "key-1", line("2")), http.StatusCreated)
	again := b.restock(t, "key-1", moreMugs)
	wantStatus(t, again, http.StatusCreated)
	if again.Body.String() != want || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, replayed %q; want %s again", again.Body, again.Header().Get("Idempotent-Replayed"), want)
	}
	wantProblem(t, b.restock(t, "key-1", `{"kind":"supply","units":6}`), http.StatusUnprocessableEntity, "key-reused")
	if level := b.restock(t, "key-2", moreMugs).Body.String(); !strings.Contains(level, `"supplied":11,"available":9,"reserved":2`) {
		t.Errorf("got %s, want 11 supplied, 2 of them reserved", level)
	}
	b.wantClean(t)
}

type movementPage struct {
	Movements []struct {
		ID        string `json:"id"`
		Kind      string `json:"kind"`
		OrderID   string `json:"order_id"`
		Supplied  int64  `json:"supplied"`
		Available int64  `json:"available"`
		Reserved  int64  `json:"reserved"`
		Sold      int64  `json:"sold"`
		Fence     int64  `json:"fence"`
		CreatedAt string `json:"created_at"`
	} `json:"movements"`
	NextCursor string `json:"next_cursor"`
}

// The ledger in pages, the earliest first, of this SKU alone.
func TestListMovements(t *testing.T) {
	b := setup(t, nil)
	b.supply(t, "cup", 1)
	b.supply(t, "mug", 9)
	wantStatus(t, b.buy(t, "key-1", line("2")), http.StatusCreated)
	wantStatus(t, b.restock(t, "key-1", moreMugs), http.StatusCreated)
	want := []string{"supply 9 9 0", "reserve 0 -2 2", "supply 5 5 0"}
	for _, limit := range []string{"1", "2", "3", "4", ""} {
		var got []string
		cursor := ""
		for range len(want) + 1 {
			w := b.operate(t, http.MethodGet, movesOfMug+"?limit="+limit+"&cursor="+cursor, "")
			wantStatus(t, w, http.StatusOK)
			var page movementPage
			unmarshal(t, w, &page)
			for _, m := range page.Movements {
				got = append(got, fmt.Sprintf("%s %d %d %d", m.Kind, m.Supplied, m.Available, m.Reserved))
				if (m.OrderID != "") != (m.Kind == "reserve") || m.ID == "" || !strings.HasSuffix(m.CreatedAt, "Z") {
					t.Errorf("got %+v, want an id, a time in UTC, and an order only where one moved units", m)
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("limit %q: got %v, want %v", limit, got, want)
		}
	}
	var skus struct {
		NextCursor string `json:"next_cursor"`
	}
	unmarshal(t, b.call(t, http.MethodGet, "/v1/skus?limit=1", ""), &skus)
	for _, target := range []string{movesOfMug + "?cursor=mug", movesOfMug + "?cursor=" + skus.NextCursor, movesOfMug + "?limit=0", movesOfMug + "?limit=101"} {
		wantProblem(t, b.operate(t, http.MethodGet, target, ""), http.StatusBadRequest, "malformed")
	}
	wantProblem(t, b.operate(t, http.MethodGet, "/v1/skus/hat/movements", ""), http.StatusNotFound, "sku-not-found")
}
