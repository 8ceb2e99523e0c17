package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"example.com/shop/internal/auth"
)

// foreignOrders: another buyer's order is not there, on any instance, and who shows no good token is nobody.
func foreignOrders(t *testing.T, k kind) {
	s := k.open(t, nil)
	s.create(0, "mug", 5)
	placed := s.buy(0, "ann", "key-1", "2 mug").want(t, http.StatusCreated)
	path := placed.header.Get("Location")
	tries := []request{
		{method: http.MethodGet, path: path},
		{method: http.MethodPost, path: path + "/pay"},
		{method: http.MethodPost, path: path + "/pay", key: "key-1"},
		{method: http.MethodPost, path: path + "/cancel"},
	}
	for on := range instances {
		for _, r := range tries {
			r.on, r.buyer = on, "bob"
			s.send(r).want(t, http.StatusNotFound)
			for name, token := range s.badTokens(t) {
				r.token = token
				if got := s.send(r); got.status != http.StatusUnauthorized {
					t.Errorf("%s, %s %s: got %d %s, want 401", name, r.method, r.path, got.status, got.body)
				}
			}
		}
		s.send(request{on: on, method: http.MethodGet, path: "/v1/audit", token: s.token("ann")}).want(t, http.StatusUnauthorized)
	}
	if got := s.ordersOf(2, "bob"); len(got) != 0 {
		t.Errorf("got orders %+v of bob, want none", got)
	}
	// A key is a buyer's own.
	s.buy(1, "bob", "key-1", "1 mug").want(t, http.StatusCreated)
	if got := s.get(2, "ann", path).want(t, http.StatusOK); got.body != placed.body {
		t.Errorf("got %s, want it untouched: %s", got.body, placed.body)
	}
	s.wantBooks(0)
}

// badTokens open nothing, although some say that they are ann's.
func (s *shop) badTokens(t *testing.T) map[string]string {
	t.Helper()
	other := auth.New(secret(t, "CRYjMD1KV2RxfouYpbK/zNnm8wANGic0QU5baHWCj5w="))
	foreign, _, err := other.Mint("ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"of another secret": foreign, "of the operator": operatorToken}
}
