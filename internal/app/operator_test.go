package app_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
	"example.com/shop/internal/httpapi/contract"
	"example.com/shop/internal/testserver"
)

const asOperator = "Authorization: Bearer " + operatorToken

// as returns the header by which a buyer is known.
func as(t *testing.T, buyer string) string {
	t.Helper()
	tokens := auth.New(secret(t, tokenSecret))
	token, _, err := tokens.Mint(buyer, time.Hour)
	testserver.Must(t, err)
	return "Authorization: Bearer " + token
}

// "The operator's API is open only if it has an address; it has a listener and a token of its own". In
// Shutdown, the API closes last.
func TestShop_operator(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.DrainDelay = time.Minute
	shop := start(t, s)
	public, operator := shop.URL(), "http://"+shop.OperatorAddr()
	for _, c := range []struct {
		listener    *contract.Contract
		url, header string
		want        int
	}{
		{contract.Operator(), operator + "/v1/audit", asOperator, http.StatusOK},
		{contract.Operator(), operator + "/v1/audit", as(t, "ann"), http.StatusUnauthorized},
		{contract.Operator(), operator + "/v1/audit", "Shop-Buyer: ann", http.StatusUnauthorized},
		{contract.Operator(), operator + "/v1/orders", asOperator, http.StatusNotFound},
		{contract.Operator(), operator + "/healthz", "Shop-Buyer: ann", http.StatusOK},
		{contract.Buyers(), public + "/v1/audit", asOperator, http.StatusNotFound},
		{contract.Buyers(), public + "/v1/orders", asOperator, http.StatusUnauthorized},
	} {
		c.listener.Send(http.MethodGet, c.url, "", c.header).Want(t, c.want)
	}
	ctx, cut := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	go func() { closed <- shop.Shutdown(ctx) }()
	testserver.Until(t, "readiness fails", 10*time.Second, func() bool {
		return call(t, http.MethodGet, public+"/readyz", "").Status == http.StatusServiceUnavailable
	})
	contract.Operator().Send(http.MethodGet, operator+"/healthz", "").Want(t, http.StatusOK)
	cut()
	if err := <-closed; err != nil && !errors.Is(err, context.Canceled) { // a connection may have been about to close
		t.Errorf("got %v, want nil or that the rest was aborted", err)
	}
}

// A profile does not delay the end.
func TestShutdown_profile(t *testing.T) {
	t.Parallel()
	shop := start(t, embedded(t, 5))
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		operate(shop, http.MethodGet, "/debug/pprof/allocs?seconds=200", "")
	}()
	testserver.Until(t, "a profile is made", 10*time.Second, func() bool {
		return strings.Contains(operate(shop, http.MethodGet, "/debug/pprof/goroutine?debug=2", "").Body, "serveDeltaProfile")
	})
	if err := shop.Shutdown(context.Background()); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	<-cut
}

func TestStart_operatorPortTaken(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	first := start(t, s)
	s.OperatorListen = first.OperatorAddr()
	if _, err := app.Start(t.Context(), s, app.Hooks{}); err == nil || !strings.Contains(err.Error(), "--operator-listen") {
		t.Errorf("got %v, want an error that names --operator-listen", err)
	}
	s.Listen = first.Addr() // both: what most people run comes first
	if _, err := app.Start(t.Context(), s, app.Hooks{}); err == nil || !strings.HasPrefix(err.Error(), "listen: ") {
		t.Errorf("got %v, want an error that names --listen", err)
	}
	s.OperatorListen = "127.0.0.1:0"
	if _, err := app.Start(t.Context(), s, app.Hooks{}); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("got %v, want an error that names --listen", err)
	}
}
