package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/stock"
)

// provide sends a request of the payment service.
func (s *shop) provide(t testing.TB, call, body string) *httptest.ResponseRecorder {
	t.Helper()
	return s.callOn(t, s.operator, call, body, asProvider, asJSON)
}

// payment returns a payment of an amount. The price of one mug is 1250.
func payment(id string, minor int) string {
	return fmt.Sprintf(`{"payment_id":"%s","amount":{"minor":%d,"currency":"EUR"}}`, id, minor)
}

// A payment service gets these answers, from the first payment of an order to the refund of the second payment.
func TestPayments(t *testing.T) {
	t.Parallel()
	var seen witness
	s := newShop(t, func(c *httpapi.Config) { c.Observer = &seen })
	s.supply(t, "mug", 10)
	path, other, last := s.place(t, "key-1", "1"), s.place(t, "key-2", "1"), s.place(t, "key-3", "1")
	seen.take()

	wantProblem(t, s.provide(t, "POST "+path+"/pay", payment("pi_1", 1249)), "409 amount-mismatch")
	first := s.provide(t, "POST "+path+"/pay", payment("pi_2", 1250))
	wantStatus(t, first, http.StatusOK)
	if !strings.Contains(first.Body.String(), `"status":"paid"`) {
		t.Errorf("got %s, want it paid", first.Body)
	}
	wantReplay(t, first, s.provide(t, "POST "+path+"/pay", payment("pi_2", 1250)))
	p := wantProblem(t, s.provide(t, "POST "+path+"/pay", payment("pi_3", 1250)), "409 already-paid")
	if p["refund"] != true || p["order_status"] != "paid" || p["retry_safe"] != false {
		t.Errorf("got %v, want an answer that asks for a refund", p)
	}
	if p := wantProblem(t, s.provide(t, "POST "+other+"/pay", payment("pi_2", 1250)), "422 payment-reused"); p["refund"] != nil {
		t.Errorf("got %v, want nothing about a refund", p)
	}
	wantStatus(t, s.provide(t, "POST "+path+"/payment-failed", `{"release":true}`), http.StatusOK)

	before := unmarshal[struct {
		ExpiresAt time.Time `json:"expires_at"`
	}](t, s.call(t, "GET "+other, ""))
	extended := before.ExpiresAt.Add(15 * time.Minute).Format(`"expires_at":"2006-01-02T15:04`)
	if w := s.provide(t, "POST "+other+"/extend", ""); !strings.Contains(w.Body.String(), extended) {
		t.Errorf("got %s, want 15 minutes after %v", w.Body, before.ExpiresAt)
	}
	wantStatus(t, s.provide(t, "POST "+other+"/payment-failed", `{"release":false}`), http.StatusOK)
	wantStatus(t, s.provide(t, "POST "+other+"/payment-failed", `{"release":true}`), http.StatusOK)
	wantProblem(t, s.provide(t, "POST "+other+"/extend", ""), "409 order-ended")
	wantProblem(t, s.provide(t, "POST "+other+"/pay", payment("pi_4", 1250)), "409 order-ended")
	s.wantLevel(t, "mug", stock.Level{Supplied: 10, Available: 8, Reserved: 1, Sold: 1})

	type page struct {
		Payments []struct {
			PaymentID string `json:"payment_id"`
			Refusal   string
		}
		NextCursor string `json:"next_cursor"`
	}
	list := func(filter, limit string) []string {
		get := func(query string) *httptest.ResponseRecorder {
			return s.operate(t, "GET /v1/payments"+query+filter, "")
		}
		return pages(t, get, limit, func(p page) (all []string, next string) {
			for _, one := range p.Payments {
				all = append(all, one.PaymentID+" "+one.Refusal)
			}
			return all, p.NextCursor
		})
	}
	refused := []string{"pi_1 amount-mismatch", "pi_3 already-paid", "pi_4 order-ended"}
	if got := list("&refused=true", "1"); !slices.Equal(got, refused) {
		t.Errorf("got %v, want %v", got, refused)
	}
	if w := s.provide(t, "POST /v1/payments/pi_3/refunded", ""); !strings.Contains(w.Body.String(), `"refunded_at":"20`) {
		t.Errorf("got %s, want when it was refunded", w.Body)
	}
	if got, want := list("&refused=true", "100"), slices.Delete(slices.Clone(refused), 1, 2); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for range 2 { // the refund fails later, and is reported twice
		if w := s.provide(t, "POST /v1/payments/pi_3/refund-failed", "{}"); w.Code != http.StatusOK ||
			strings.Contains(w.Body.String(), "refunded_at") {
			t.Errorf("got %d %s, want it not refunded", w.Code, w.Body)
		}
	}
	if got := list("&refused=true", "100"); !slices.Equal(got, refused) {
		t.Errorf("got %v, want %v", got, refused)
	}
	wantStatus(t, s.provide(t, "POST /v1/payments/pi_2/refunded", ""), http.StatusOK) // the order stays paid
	if got := list("&refunded=true", "100"); !slices.Equal(got, []string{"pi_2 "}) {
		t.Errorf("got %v, want the payment that paid", got)
	}
	if w := s.provide(t, "POST /v1/payments/pi_5/refunded", ""); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "order_id") {
		t.Errorf("got %d %s, want a refund of a payment that is still to come", w.Code, w.Body)
	}
	for range 2 {
		p := wantProblem(t, s.provide(t, "POST "+last+"/pay", payment("pi_5", 1250)), "409 already-refunded")
		if p["refund"] != nil || p["order_status"] != "pending" {
			t.Errorf("got %v, want nothing about a refund", p)
		}
	}
	want := append(slices.Insert(slices.Clone(refused), 1, "pi_2 "), "pi_5 already-refunded")
	if got := list("", "2"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, query := range []string{"refused=false", "refunded=1", "refused=true&refunded=true"} {
		wantProblem(t, s.operate(t, "GET /v1/payments?"+query, ""), "400 malformed")
	}
	told := slices.DeleteFunc(seen.take(), func(what string) bool { return strings.Contains(what, "/") }) // requests
	if want := []string{
		"pay amount-mismatch", "pay paid", "pay replayed", "pay already-paid", "pay payment-reused", "payment-failed noted",
		"extend extended", "payment-failed noted", "payment-failed noted", "extend order-ended", "pay order-ended",
		"refund refunded", "refund-failed noted", "refund-failed noted", "refund refunded", "refund refunded",
		"pay already-refunded", "pay already-refunded",
	}; !slices.Equal(told, want) {
		t.Errorf("got %q counted, want %q", told, want)
	}
}

// Bad requests of a payment service change nothing.
func TestPayments_bad(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "mug", 10)
	path := s.place(t, "key-1", "1")
	nowhere := "/v1/orders/01930000-0000-7000-8000-000000000000"
	for want, calls := range map[string][][2]string{
		"422 invalid-payment": {
			{path + "/pay", `{}`}, {path + "/pay", `{"payment_id":"pi_1"}`}, {path + "/pay", payment("", 1250)},
			{path + "/pay", payment("pi_1", -1)},
			{path + "/pay", payment(times("p", 256), 1250)}, {path + "/pay", payment("€", 1250)},
			{path + "/pay", payment("a/b", 1250)}, {path + "/pay", payment(".", 1250)}, {path + "/pay", payment("..", 1250)},
			{path + "/pay", payment("buyer:ann", 1250)}, {path + "/pay", `{"payment_id":"pi_1","amount":{"minor":1250,"currency":"eur"}}`},
		},
		"400 malformed": {
			{path + "/pay", ``}, {path + "/pay", `{"payment_id":1}`}, {path + "/payment-failed", `{"release":1}`},
			{path + "/payment-failed", ``}, {path + "/extend", `{"by":"1h"}`},
			{path + "/pay?force=1", payment("pi_1", 1250)},
		},
		"404 order-not-found": {{nowhere + "/pay", payment("pi_1", 1250)}, {nowhere + "/payment-failed", `{}`},
			{nowhere + "/extend", ``}, {"/v1/orders/ANN/pay", payment("pi_1", 1250)}},
		"404 payment-not-found": {
			{"/v1/payments/pi_1/refund-failed", ``}, {"/v1/payments/buyer:" + path[len("/v1/orders/"):] + "/refunded", ``},
			{"/v1/payments/%00/refunded", ``}, {"/v1/payments/%2e%2e/refunded", ``}, {"/v1/payments/" + times("p", 256) + "/refunded", ``},
		},
	} {
		for _, call := range calls {
			wantProblem(t, s.provide(t, "POST "+call[0], call[1]), want)
		}
	}
	s.wantLevel(t, "mug", stock.Level{Supplied: 10, Available: 9, Reserved: 1})
	if w := s.operate(t, "GET /v1/payments", ""); w.Body.String() != "{\"payments\":[]}\n" {
		t.Errorf("got %s, want none", w.Body)
	}
}

// "It gives access only to payments", and no other token opens these calls, whose refusals are counted by outcome. Only
// in a demonstration may buyers pay themselves.
func TestPayments_tokens(t *testing.T) {
	t.Parallel()
	var seen witness
	s := newShop(t, func(c *httpapi.Config) { c.BuyersPay, c.Observer = false, &seen })
	s.supply(t, "mug", 10)
	path := s.place(t, "key-1", "1")
	another := newShop(t, func(c *httpapi.Config) { c.PaymentsToken = secret(t, shopSecret) })
	for action, call := range map[string]string{
		"pay": path + "/pay", "payment-failed": path + "/payment-failed", "extend": path + "/extend",
		"refund": "/v1/payments/pi_1/refunded", "refund-failed": "/v1/payments/pi_1/refund-failed",
	} {
		seen.take()
		wantProblem(t, s.operate(t, "POST "+call, payment("pi_1", 1250)), "401 bad-token")
		wantProblem(t, s.callOn(t, s.operator, "POST "+call, payment("pi_1", 1250)), "401 no-token")
		if told := seen.take(); !slices.Contains(told, action+" bad-token") || !slices.Contains(told, action+" no-token") {
			t.Errorf("got %q counted, want both refusals", told)
		}
		wantProblem(t, another.provide(t, "POST "+call, payment("pi_1", 1250)), "401 bad-token")
	}
	for _, call := range []string{"GET /v1/payments", "POST /v1/skus", "GET /v1/audit", "GET /metrics", "GET /nowhere"} {
		wantProblem(t, s.provide(t, call, newSKU), "401 bad-token")
	}
	p := wantProblem(t, s.call(t, "POST "+path+"/pay", ""), "403 paid-by-provider") // and is not counted as the payment service's
	if told := seen.take(); !slices.Contains(told, "buyers-pay paid-by-provider") {
		t.Errorf("got %q counted, want the buyer's call", told)
	}
	if !strings.Contains(fmt.Sprint(p["detail"]), "docs/payments.md") {
		t.Errorf("got %v, want where to read on", p)
	}
	s.wantLevel(t, "mug", stock.Level{Supplied: 10, Available: 9, Reserved: 1})
}
