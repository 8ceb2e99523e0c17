package orderhttp_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/shop/internal/stock"
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
	b.supplyAt(t, stock.Money{Minor: 1, Currency: "USD"}, "pen", 5)
	for text, want := range map[string]string{
		`{"sku":"mug","quantity":1},{"sku":"pen","quantity":6}`:   `sku "pen": not enough units are available`,
		`{"sku":"mug","quantity":1},{"sku":"cup","quantity":1}`:   `sku "cup": unknown SKU`,
		`{"sku":"mug","quantity":1},{"sku":"pen","quantity":1}`:   `invalid order: sku "mug" costs EUR and sku "pen" USD: order them one by one`,
		`{"sku":"mug","quantity":999},{"sku":"mug","quantity":2}`: `invalid order: sku "mug": its lines want 1001 units, at most 1000 are allowed`,
		strings.Repeat(`{"sku":"mug","quantity":1},`, 20) + `{}`:  "invalid order: 21 lines, at most 20 are allowed",
	} {
		wantDetail(t, "/v1/orders", lines(text), want)
	}
	wantDetail(t, "/v1/orders", lines(`{"sku":"mug","quantity":1},{"quantity":1}`), "invalid order: line 2: sku is missing")
	wantDetail(t, "/v1/orders", goodOrder, `invalid buyer "a b": want 1 to 64 letters, digits, '.', '_', '@', '-', the first a letter or a digit`, "Shop-Buyer: a b")
	wantDetail(t, "/v1/orders", goodOrder, "malformed request: header Idempotency-Key comes 2 times", "Idempotency-Key: key-2")
	wantDetail(t, "/v1/orders", goodOrder, `unknown strategy "hope": want one of lanes, redis, redlock, mysql-lock, zookeeper, for-update, optimistic, conditional, none, mutex, setnx-expire, setex, blind-del, get-then-del, release-before-commit, short-lease`, "Shop-Strategy: hope")
	wantDetail(t, "/v1/skus", `{"units":1}`, "invalid: sku is missing: want 1 to 64 of a-z, 0-9, '.', '_', '-'")
	wantDetail(t, "/v1/skus", `{"sku":"mug","units":1}`, `sku "mug": SKU exists already`)
	wantDetail(t, "/v1/skus", `{"sku":"cup","units":99999999999999999999}`, `invalid: sku "cup": units: want 0 to 1000000000`)
	wantDetail(t, "/v1/skus", `{"sku":"cup","units":1.5}`, "malformed request: body: units: want a whole number, not 1.5")
}

// The operator's, likewise.
func TestProblem_details_operator(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	for name, c := range map[string]struct {
		key, body, want string
	}{
		"no key":      {"", moreMugs, "Send the header Idempotency-Key with a value of your own, such as a delivery note's number, one per delivery."},
		"no units":    {"key-1", delivered("0"), `invalid: sku "mug": units: want 1 to 1000000000`},
		"beyond most": {"key-1", delivered("1000000000"), `invalid: sku "mug": units: 5 were supplied, and at most 1000000000 can be in all`},
	} {
		var got struct{ Detail string }
		unmarshal(t, b.operate(t, http.MethodPost, movesOfMug, c.body, asJSON, "Idempotency-Key: "+c.key), &got)
		if got.Detail != c.want {
			t.Errorf("%s: got detail %q, want %q", name, got.Detail, c.want)
		}
	}
}
