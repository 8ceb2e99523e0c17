package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// order is one as it is answered.
type order struct {
	ID        string    `json:"id"`
	Buyer     string    `json:"buyer"`
	Status    string    `json:"status"`
	Lines     []line    `json:"lines"`
	Total     money     `json:"total"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

type line struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	Price    money  `json:"price"`
}

type money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// level is how many units of a SKU there are.
type level struct {
	Supplied  int64 `json:"supplied"`
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"`
	Sold      int64 `json:"sold"`
}

// buy places an order; a line is written "3 mug".
func (s *shop) buy(on int, buyer, key string, lines ...string) answer {
	var wanted []string
	for _, line := range lines {
		quantity, sku, _ := strings.Cut(line, " ")
		wanted = append(wanted, fmt.Sprintf(`{"sku":%q,"quantity":%s}`, sku, quantity))
	}
	body := `{"lines":[` + strings.Join(wanted, ",") + `]}`
	return s.send(request{on: on, buyer: buyer, method: http.MethodPost, path: "/v1/orders", body: body, key: key})
}

// end asks for an end of an order: how is "pay" or "cancel".
func (s *shop) end(on int, buyer, id, how, key string) answer {
	return s.send(request{on: on, buyer: buyer, method: http.MethodPost, path: "/v1/orders/" + id + "/" + how, key: key})
}

// get reads; the operator's API without a buyer.
func (s *shop) get(on int, buyer, path string) answer {
	return s.send(request{on: on, buyer: buyer, method: http.MethodGet, path: path})
}

// create puts a SKU up for sale at 12.50 EUR.
func (s *shop) create(on int, sku string, units int) {
	s.t.Helper()
	body := fmt.Sprintf(`{"sku":%q,"units":%d,"price":{"minor":1250,"currency":"EUR"}}`, sku, units)
	s.send(request{on: on, method: http.MethodPost, path: "/v1/skus", body: body}).want(s.t, http.StatusCreated)
}

// restock brings units in.
func (s *shop) restock(on int, sku, key string, units int) answer {
	body := fmt.Sprintf(`{"kind":"supply","units":%d}`, units)
	return s.send(request{on: on, method: http.MethodPost, path: "/v1/skus/" + sku + "/movements", body: body, key: key})
}

// want fails unless the answer has the status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.err != nil || a.status != status {
		t.Fatalf("got %d %s, %v; want status %d", a.status, a.body, a.err, status)
	}
	return a
}

// wantRefusal fails unless the answer is a 409 that tells this state of the order.
func (a answer) wantRefusal(t *testing.T, state string) {
	t.Helper()
	if a.want(t, http.StatusConflict); a.orderStatus() != state {
		t.Errorf("got %s, want order_status %s", a.body, state)
	}
}

// wantReplayOf fails unless the answer is that one again, byte for byte.
func (a answer) wantReplayOf(t *testing.T, first answer) {
	t.Helper()
	a.want(t, first.status)
	if a.body != first.body || a.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("got %s %s, want %s %s", a.header.Get("Location"), a.body, first.header.Get("Location"), first.body)
	}
	if got := a.header.Get("Idempotent-Replayed"); got != "true" {
		t.Errorf("got Idempotent-Replayed %q, want true", got)
	}
}

// order reads the order of an answer.
func (a answer) order(t *testing.T) order {
	t.Helper()
	var o order
	a.decode(t, &o)
	return o
}

func (a answer) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
}

// problem is what an answer says is wrong; "" for none.
func (a answer) problem() string {
	var p struct{ Type string }
	_ = json.Unmarshal([]byte(a.body), &p)
	return strings.TrimPrefix(p.Type, "/problems/")
}

func (a answer) orderStatus() string {
	var p struct {
		State string `json:"order_status"`
	}
	_ = json.Unmarshal([]byte(a.body), &p)
	return p.State
}

// soldOut tells whether the answer turns a buyer away because nothing is left.
func (a answer) soldOut() bool { return a.status == http.StatusConflict && a.problem() == "sold-out" }

// awaitStatus returns when the order is in the state.
func (s *shop) awaitStatus(on int, buyer, id, state string) {
	s.t.Helper()
	testserver.Until(s.t, "the order is "+state, patience, func() bool {
		return s.get(on, buyer, "/v1/orders/"+id).want(s.t, http.StatusOK).order(s.t).Status == state
	})
}
