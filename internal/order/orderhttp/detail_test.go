package orderhttp_test

import (
	"net/http"
	"testing"
)

// "its detail is made for people"
func TestProblem_details(t *testing.T) {
	b := setup(t, lab)
	b.supply(t, "mug", 5)
	wantDetail := func(t *testing.T, call, body, want string, headers ...string) {
		t.Helper()
		w := b.call(t, http.MethodPost, call, body, append(headers, asJSON, "Idempotency-Key: key-1")...)
		var got struct{ Detail string }
		unmarshal(t, w, &got)
		if got.Detail != want {
			t.Errorf("%s %s: got detail %q, want %q", call, body, got.Detail, want)
		}
	}
	for quantity, want := range map[string]string{
		"6":                     `sku "mug": not enough units are available`,
		"0":                     "invalid order: line 1: quantity is less than 1",
		"-99999999999999999999": "invalid order: line 1: quantity is less than 1",
		"1001":                  "invalid order: line 1: quantity is more than 1000",
		"99999999999999999999":  "invalid order: line 1: quantity is more than 1000",
		"1.5":                   "malformed request: body: lines.quantity: want a whole number, not 1.5",
		`"1"`:                   `malformed request: body: lines.quantity: want a whole number, not "1"`,
		"[1]":                   "malformed request: body: lines.quantity: want a whole number, not [1]",
	} {
		wantDetail(t, "/v1/orders", line(quantity), want)
	}
	wantDetail(t, "/v1/orders", goodOrder, `unknown strategy "hope": want one of redis, conditional, none, mutex`, "Shop-Strategy: hope")
	wantDetail(t, "/v1/skus", `{"sku":"mug","units":1}`, `sku "mug": SKU exists already`)
	wantDetail(t, "/v1/skus", `{"sku":"cup","units":99999999999999999999}`, `invalid: sku "cup": units: want 0 to 1000000000`)
	wantDetail(t, "/v1/skus", `{"sku":"cup","units":1.5}`, "malformed request: body: units: want a whole number, not 1.5")
}
