package contract_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi/contract"
)

const (
	id    = "0190d0c0-0000-7000-8000-000000000000"
	order = `{"id":"` + id + `","buyer":"ann","status":"pending",` +
		`"lines":[{"sku":"mug","quantity":1,"price":{"minor":1250,"currency":"EUR"}}],"total":{"minor":1250,"currency":"EUR"},` +
		`"created_at":"2026-01-02T03:04:05.123456Z","expires_at":"2026-01-02T03:19:05.123456Z"}`
	problem = `{"type":"/problems/sold-out","title":"Sold out","status":409,"detail":"sku \"mug\"","retry_safe":false}`
)

func headers(more ...string) http.Header {
	h := http.Header{"Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}, "X-Request-Id": {"a1"}}
	for _, line := range more {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	return h
}

// An answer that is off the contract is noticed, and what is wrong is named.
func TestCheck(t *testing.T) {
	t.Parallel()
	const asJSON, location = "Content-Type: application/json; charset=utf-8", "Location: /v1/orders/" + id
	const asProblem = "Content-Type: application/problem+json"
	with := func(old, by string) string { return strings.Replace(order, old, by, 1) }
	for name, c := range map[string]struct {
		call   string
		status int
		header http.Header
		answer string
		want   string // in the error; empty for a good answer
	}{
		"placed":  {"POST /v1/orders", 201, headers(asJSON, location), order, ""},
		"refused": {"POST /v1/orders", 409, headers(asProblem), problem, ""},
		"head":    {"HEAD /v1/orders/" + id, 200, headers(asJSON), "", ""},

		"unknown field":     {"POST /v1/orders", 201, headers(asJSON, location), with(`"buyer"`, `"colour":"red","buyer"`), "colour"},
		"missing field":     {"POST /v1/orders", 201, headers(asJSON, location), with(`"buyer":"ann",`, ""), "buyer"},
		"other type":        {"GET /v1/orders/" + id, 200, headers(asJSON), with(`"quantity":1`, `"quantity":"1"`), "an integer"},
		"unknown problem":   {"POST /v1/orders", 409, headers(asProblem), strings.Replace(problem, "sold-out", "gone", 1), "/problems/busy"},
		"media type":        {"POST /v1/orders", 409, headers("Content-Type: application/json"), problem, "application/json"},
		"status not listed": {"GET /v1/orders/" + id, 202, headers(asJSON), order, "202 is not listed"},
		"header missing":    {"POST /v1/orders", 201, headers(asJSON), order, "Location"},
		"header not listed": {"GET /v1/orders/" + id, 200, headers(asJSON, "X-Powered-By: shop"), order, "X-Powered-By"},
	} {
		method, target, _ := strings.Cut(c.call, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
		err := contract.Buyers().Check(r, c.status, c.header, []byte(c.answer))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
