package orderhttp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/order/orderhttp"
)

func secret(t testing.TB, text string) auth.Secret {
	t.Helper()
	made, err := auth.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// tokens are those of a shop with a secret.
func tokens(t *testing.T, text string) *auth.Tokens {
	t.Helper()
	made, err := auth.New(secret(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const shopSecret = "Vq3t6w9zC-F)J@NcRfUjXn2r5u8x/A?D"

// shows returns the header by which a buyer is known.
func shows(t *testing.T, secret, buyer string) string {
	t.Helper()
	token, _, err := tokens(t, secret).Mint(buyer, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return "Authorization: Bearer " + token
}

// withTokens is setup of a shop that knows its buyers.
func withTokens(t *testing.T) *bundle {
	t.Helper()
	return setup(t, func(c *orderhttp.Config) { c.Buyers = tokens(t, shopSecret) })
}

// A buyer sees the own order, whatever Shop-Buyer claims; "another's is 404".
func TestToken_buyer(t *testing.T) {
	t.Parallel()
	b := withTokens(t)
	b.supply(t, "mug", 3)
	ann, bob := shows(t, shopSecret, "ann"), shows(t, shopSecret, "bob")
	w := b.buy(t, "key-1", goodOrder, ann, "Shop-Buyer: bob")
	wantStatus(t, w, http.StatusCreated)
	location := w.Header().Get("Location")
	wantStatus(t, b.call(t, http.MethodGet, location, "", ann), http.StatusOK)
	wantStatus(t, b.call(t, http.MethodGet, location, "", strings.Replace(ann, "Bearer", "bearer", 1)), http.StatusOK)
	wantProblem(t, b.call(t, http.MethodGet, location, "", bob), http.StatusNotFound, "order-not-found")
	wantProblem(t, b.call(t, http.MethodGet, location, "", bob, "Shop-Buyer: ann"), http.StatusNotFound, "order-not-found")

	again := b.buy(t, "key-1", goodOrder, ann)
	wantStatus(t, again, http.StatusCreated)
	if again.Header().Get("Idempotent-Replayed") != "true" || again.Header().Get("Location") != location {
		t.Errorf("got %v, want ann's order again", again.Header())
	}
	wantStatus(t, b.buy(t, "key-1", goodOrder, bob), http.StatusCreated)
	b.wantClean(t)
}

// Who only looks, and the load balancer, need no token; a wrong path stays one.
func TestToken_notWanted(t *testing.T) {
	t.Parallel()
	b := withTokens(t)
	b.supply(t, "mug", 3)
	for _, target := range []string{"/v1/skus", "/v1/skus/mug", "/healthz", "/readyz"} {
		wantStatus(t, b.call(t, http.MethodGet, target, "", "Authorization: Bearer x"), http.StatusOK)
	}
	wantProblem(t, b.call(t, http.MethodGet, "/v1/ordersx", ""), http.StatusNotFound, "not-found")
	wantProblem(t, b.call(t, http.MethodPut, "/v1/orders", ""), http.StatusMethodNotAllowed, "method-not-allowed")
}

// undecided cannot tell, through no fault of the token.
type undecided struct{}

func (undecided) Verify(string) (string, error) { return "", errors.New("out of order") }

// Only a token that is to blame is a 401: a buyer would get a new one in vain.
func TestToken_notToBlame(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *orderhttp.Config) { c.Buyers = undecided{} })
	w := b.call(t, http.MethodGet, "/v1/orders/x", "", "Authorization: Bearer x")
	wantProblem(t, w, http.StatusInternalServerError, "internal")
	if got := w.Header().Get("WWW-Authenticate"); got != "" {
		t.Errorf("got WWW-Authenticate %q, want none", got)
	}
}
