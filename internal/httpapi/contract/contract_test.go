package contract_test

import (
	"io"
	"maps"
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
	busy    = `{"type":"/problems/busy","title":"Busy","status":503,"detail":"again","retry_safe":true}`
	nothing = `{"type":"/problems/not-found","title":"Not found","status":404,"detail":"nothing","retry_safe":false}`
	noToken = `{"type":"/problems/no-token","title":"No token","status":401,"detail":"show it","retry_safe":false}`
	sku     = `{"sku":"mug","price":{"minor":1250,"currency":"EUR"},"supplied":5,"available":5,"reserved":0,"sold":0}`
	wrong   = `{"type":"/problems/method-not-allowed","title":"No","status":405,"detail":"not this","retry_safe":false}`
)

// exchange is a request and its answer. One whose name begins with "operator" is with the operator's listener.
type exchange struct {
	call   string
	status int
	header http.Header
	answer string
}

func headers(lines ...string) http.Header {
	h := http.Header{"Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}, "X-Request-Id": {"a1"}}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

const (
	asJSON    = "Content-Type: application/json; charset=utf-8"
	asProblem = "Content-Type: application/problem+json"
	operators = `WWW-Authenticate: Bearer realm="shop operator"`
)

// exchanges are all as the document has them.
func exchanges() map[string]exchange {
	return map[string]exchange{
		"placed":    {"POST /v1/orders", 201, headers(asJSON, "Location: /v1/orders/"+id), order},
		"replayed":  {"POST /v1/orders", 201, headers(asJSON, "Location: /v1/orders/"+id, "Idempotent-Replayed: true"), order},
		"refused":   {"POST /v1/orders", 409, headers(asProblem), problem},
		"busy":      {"POST /v1/orders", 503, headers(asProblem, "Retry-After: 1"), busy},
		"list":      {"GET /v1/orders?limit=7&cursor=", 200, headers(asJSON), `{"orders":[` + order + `],"next_cursor":"bXVn"}`},
		"read":      {"GET /v1/orders/" + id, 200, headers(asJSON), order},
		"paid":      {"POST /v1/orders/" + id + "/pay", 200, headers(asJSON), order},
		"head":      {"HEAD /v1/orders/" + id, 200, headers(asJSON), ""},
		"no path":   {"GET /v1/nothing", 404, headers(asProblem), nothing},
		"no method": {"PUT /v1/orders", 405, headers(asProblem, "Allow: GET, HEAD, POST"), wrong},

		"operator: restocked": {"POST /v1/skus/mug/movements", 201, headers(asJSON, "Idempotent-Replayed: true"), sku},
		"operator: stranger":  {"GET /v1/skus/mug/movements", 401, headers(asProblem, operators), noToken},
		"operator: nowhere":   {"GET /v1/orders", 401, headers(asProblem, operators), noToken},
		"operator: no path":   {"GET /v1/orders", 404, headers(asProblem), nothing},
		"operator: no method": {"GET /v1/skus", 405, headers(asProblem, "Allow: POST"), wrong},
		"operator: profile":   {"GET /debug/pprof/heap", 200, headers("Content-Type: application/octet-stream"), "\x00"},
		"operator: health":    {"GET /healthz", 200, headers(asJSON), `{"status":"ok"}`},
	}
}

func check(t *testing.T, name string, e exchange) error {
	t.Helper()
	c := contract.Buyers()
	if strings.HasPrefix(name, "operator") {
		c = contract.Operator()
	}
	method, target, _ := strings.Cut(e.call, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	return c.Check(r, e.status, e.header, []byte(e.answer))
}

func TestCheck_good(t *testing.T) {
	t.Parallel()
	for name, e := range exchanges() {
		if err := check(t, name, e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each way of being off the contract is noticed, and named.
func TestCheck_bad(t *testing.T) {
	t.Parallel()
	replace := func(old, by string) func(*exchange) {
		return func(e *exchange) { e.answer = strings.Replace(e.answer, old, by, 1) }
	}
	with := func(name, value string) func(*exchange) {
		return func(e *exchange) { e.header.Set(name, value) }
	}
	without := func(name string) func(*exchange) { return func(e *exchange) { e.header.Del(name) } }
	for name, c := range map[string]struct {
		good   string
		change func(*exchange)
		want   string // in the error
	}{
		"unknown field":           {"placed", replace(`"buyer"`, `"colour":"red","buyer"`), "colour"},
		"missing field":           {"read", replace(`"buyer":"ann",`, ""), "buyer"},
		"other type":              {"read", replace(`"quantity":1`, `"quantity":"1"`), "an integer"},
		"null":                    {"read", replace(`"ann"`, "null"), "null"},
		"no id":                   {"read", replace(id, "1"), "pattern"},
		"local time":              {"read", replace("456Z", "456+01:00"), "pattern"},
		"no JSON":                 {"read", func(e *exchange) { e.answer = "ok" }, "decode"},
		"empty cursor":            {"list", replace("bXVn", ""), "pattern"},
		"unknown problem":         {"refused", replace("sold-out", "gone"), "/problems/busy"},
		"other status in problem": {"refused", replace("409", "410"), "409"},
		"never safe to ask again": {"busy", replace("true", "false"), "true"},
		"other problem at a path": {"no path", replace("not-found", "busy"), "not-found"},

		"status not listed":       {"read", func(e *exchange) { e.status = 202 }, "202 is not listed"},
		"success at no path":      {"no path", func(e *exchange) { e.status = 200 }, "200 is not listed"},
		"header missing":          {"placed", without("Location"), "Location"},
		"header missing, HEAD":    {"head", without("Cache-Control"), "Cache-Control"},
		"header wrong":            {"placed", with("Location", "/v1/orders/1"), "Location"},
		"header wrong, HEAD":      {"head", with("Cache-Control", "public"), "Cache-Control"},
		"header not listed":       {"read", with("X-Powered-By", "shop"), "X-Powered-By"},
		"media type of a problem": {"refused", with("Content-Type", "application/json"), "application/json"},
		"no media type":           {"read", without("Content-Type"), "Content-Type"},

		"nobody's 401":        {"no path", func(e *exchange) { e.status, e.header, e.answer = 401, headers(asProblem, operators), noToken }, "401 is not listed"},
		"health for operator": {"operator: health", func(e *exchange) { e.status = 401 }, "401 is not listed"},
		"realm of the buyers": {"operator: stranger", with("WWW-Authenticate", `Bearer realm="shop"`), "WWW-Authenticate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exchanges()[c.good]
			e.header = maps.Clone(e.header)
			c.change(&e)
			err := check(t, c.good, e)
			if err == nil {
				t.Fatalf("got no error, want one about %s", c.want)
			}
			if said, _, _ := strings.Cut(err.Error(), "; body "); !strings.Contains(said, c.want) {
				t.Errorf("got %s, want it to be about %s", said, c.want)
			}
		})
	}
}

// Send returns the answer, and an error if the answer breaks the contract.
func TestSend(t *testing.T) {
	t.Parallel()
	for body, good := range map[string]bool{`{"status":"ok"}`: true, `{"status":"fine"}`: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), headers(asJSON))
			_, _ = io.WriteString(w, body)
		}))
		got := contract.Buyers().Send(http.MethodGet, server.URL+"/healthz", "")
		if got.Status != http.StatusOK || got.Body != body || (got.Err == nil) != good {
			t.Errorf("%s: got %+v, want an error: %v", body, got, !good)
		}
		server.Close()
	}
}
