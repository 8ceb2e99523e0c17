package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testserver"
)

// stocked is a shop with 5 mugs, one of which ann has ordered, no hats, and pens in another currency. anns is the id of the
// order.
func stocked(t *testing.T, change func(*httpapi.Config)) (s *shop, anns string) {
	t.Helper()
	s = newShop(t, change)
	s.supply(t, "mug", 5)
	s.supply(t, "hat", 0)
	s.supplyAt(t, stock.Money{Minor: 1, Currency: "USD"}, "pen", 5)
	ann := "Shop-Buyer: ann"
	if s.config.Buyers != nil {
		ann = shows(t, shopSecret, "ann")
	}
	return s, strings.TrimPrefix(s.place(t, "anns-key", "1", ann), "/v1/orders/")
}

// wantUnchanged fails unless the shop has these rows.
func (s *shop) wantUnchanged(t *testing.T, rows map[string][]string) {
	t.Helper()
	if diff := cmp.Diff(rows, s.rows(t)); diff != "" {
		t.Errorf("rows changed:\n%s", diff)
	}
}

// wantFinal fails unless the answer is the problem, such as "400 malformed", and says that a repeat would not help.
func wantFinal(t *testing.T, w *httptest.ResponseRecorder, problem string) {
	t.Helper()
	if p := wantProblem(t, w, problem); p["retry_safe"] != false {
		t.Errorf("got %v, want no retry_safe", p)
	}
}

func times(text string, n int) string { return strings.Repeat(text, n) }

// "Bad input is never a 5xx": each has its 4xx, as openapi.yaml has it, and changes no row.
func TestBadBodies(t *testing.T) { //nolint:tparallel // the rows are compared after all of them
	t.Parallel()
	s, _ := stocked(t, nil)
	rows := s.rows(t)
	table := map[string][]string{
		"400 malformed": {
			"", "sku=mug&quantity=1", `{"lines":[{"sku":"mug","quan`, goodOrder + "x", goodOrder + goodOrder, "[" + goodOrder + "]", "null",
			`{"lines":[{"sku":"mug","quantity":1}]/* please */}`, `{"lines":[{"sku":"mug","quantity":1},]}`,
			`{"lines":[{"sku":"mug","quantity":1}],"discount":100}`, `{"lines":[{"sku":"mug","quantity":1,"price":1}]}`,
			`{"lines":[{"sku":"mug","quantity":1}],"lines":[{"sku":"mug","quantity":5}]}`, `{"lines":[{"sku":"mug","quantity":1,"quantity":5}]}`,
			`{"lines":[{"sku":"mug","quantity":1,"quantit\u0079":5}]}`,
			`{"Lines":[{"sku":"mug","quantity":1}]}`, `{"lines":[{"ſku":"mug","quantity":1}]}`,
			`{"lines":null}`, `{"lines":"mug"}`, `{"lines":[null]}`, `{"lines":[{"sku":null,"quantity":1}]}`, `{"lines":[{"sku":7,"quantity":1}]}`,
			`{"lines":` + times("[", 20_000) + times("]", 20_000) + `}`, lines(`{"sku":"\ud800","quantity":1}`),
			lines("{\"sku\":\"m\xffg\",\"quantity\":1}"), `{"buyer":"bob","lines":[{"sku":"mug","quantity":1}]}`,
		},
		"413 too-large": {`{"lines":[{"sku":"` + times("m", 64<<10) + `","quantity":1}]}`, goodOrder + times(" ", 64<<10)},
		"422 invalid-order": {
			`{}`, `{"lines":[]}`, lines(times(`{"sku":"mug","quantity":1},`, 20) + `{"sku":"mug","quantity":1}`), lines(`{"sku":"mug"}`),
			line("0"), line("-1"), line("1001"), line("9223372036854775807"), lines(`{"sku":"mug","quantity":1000},{"sku":"mug","quantity":1}`),
			lines(`{"sku":"mug","quantity":9223372036854775807},{"sku":"mug","quantity":9223372036854775807}`),
			lines(`{"sku":"mug","quantity":1},{"sku":"pen","quantity":1}`),
		},
		"409 sold-out": {line("5"), lines(`{"sku":"mug","quantity":1},{"sku":"hat","quantity":1}`)},
	}
	for _, number := range []string{"null", `"1"`, "true", "1.5", "1.0", "1e400", "NaN", "01", "9223372036854775808", times("9", 60_000)} {
		table["400 malformed"] = append(table["400 malformed"], line(number))
	}
	for _, sku := range []string{"cup", "MUG", "mug ", "mug' OR '1'='1", `mug\u0000`, times("m", 65)} {
		table["422 unknown-sku"] = append(table["422 unknown-sku"], lines(`{"sku":"mug","quantity":1},{"sku":"`+sku+`","quantity":1}`))
	}
	for want, bodies := range table {
		for _, body := range bodies {
			t.Run(fmt.Sprintf("%s %.60q", want, body), func(t *testing.T) {
				wantFinal(t, s.call(t, "POST /v1/orders", body, asJSON, withKey), want)
			})
		}
	}
	s.wantUnchanged(t, rows)
}

// FuzzPlaceOrder_body: "Bad input is never a 5xx", and the sold units are those that another reader reads in the body.
func FuzzPlaceOrder_body(f *testing.F) {
	for _, body := range []string{
		"", "{}", goodOrder, line("1000"), line("1001"), line("-1"), line("1e400"), line("1.0"), line("NaN"), line(`"1"`),
		`{"lines":[{"sku":"mug","quantity":1},{"sku":"mug","quantity":2}]}`, `{"lines":[{"sku":"cup","quantity":1}]}`,
		lines(`{"sku":"mug","quantity":1},{"sku":"hat","quantity":2}`),
		goodOrder + goodOrder, `{"lines":null}`, "\ufeff" + goodOrder, times(`{"lines":`, 9) + times("}", 9),
	} {
		f.Add(body)
	}
	s := newShop(f, nil)
	s.supply(f, "mug", stock.MaxUnits)
	keys := 0
	f.Fuzz(func(t *testing.T, body string) {
		keys++
		w := s.buy(t, fmt.Sprint("key", keys), body)
		if w.Code >= 400 && w.Code < 500 {
			wantStatus(t, w, w.Code) // a problem, and complete
			return
		}
		wantStatus(t, w, http.StatusCreated)
		type said struct {
			Lines []struct {
				SKU      string
				Quantity int64
			}
		}
		var want said
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatalf("sold for %q, which is no JSON: %v", body, err)
		}
		units := func(order said) map[string]int64 {
			sum := map[string]int64{}
			for _, l := range order.Lines {
				sum[l.SKU] += l.Quantity
			}
			return sum
		}
		if diff := cmp.Diff(units(want), units(unmarshal[said](t, w))); diff != "" {
			t.Errorf("%q was sold as\n%s", body, diff)
		}
	})
}

// half is a body that ends with an error.
type half struct{ err error }

func (h half) Read([]byte) (int, error) { return 0, h.err }

func TestBrokenBody(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	for want, err := range map[string]error{
		"408 slow-body": fmt.Errorf("read tcp: %w", os.ErrDeadlineExceeded), "400 malformed": io.ErrUnexpectedEOF,
	} {
		wantProblem(t, s.send(t, s.handler, "POST /v1/orders", half{err}, asJSON, withKey), want)
	}
}

// Headers of a good order.
func TestBadHeaders(t *testing.T) { //nolint:tparallel // the rows are compared after all of them
	t.Parallel()
	const media = "Content-Type: "
	s, _ := stocked(t, nil)
	rows := s.rows(t)
	for want, table := range map[string][][]string{
		"400 key-missing": {{asJSON}, {asJSON, "Idempotency-Key: "}},
		"400 key-invalid": {
			{asJSON, "Idempotency-Key: " + times("k", 256)}, {asJSON, "Idempotency-Key: schlüssel"},
			{asJSON, "Idempotency-Key: a\r\nShop-Buyer: bob"},
		},
		"415 media-type": {
			{withKey}, {withKey, media + "application/x-www-form-urlencoded"}, {withKey, media + "application/json; charset=utf-16"},
			{withKey, media + "*/*"}, {withKey, media + "application/json, text/plain"}, {withKey, asJSON, "Content-Encoding: gzip"},
		},
		"422 invalid-order": {
			{withKey, asJSON, "Shop-Buyer: a b"}, {withKey, asJSON, "Shop-Buyer: " + times("b", 65)}, {withKey, asJSON, "Shop-Buyer: ann, bob"},
		},
		"400 malformed": { // repeated
			{asJSON, withKey, "Idempotency-Key: key-2"}, {asJSON, withKey, withKey}, {withKey, asJSON, media + "text/plain"},
		},
	} {
		for _, headers := range table {
			t.Run(fmt.Sprintf("%s %.80q", want, headers), func(t *testing.T) {
				wantFinal(t, s.call(t, "POST /v1/orders", goodOrder, headers...), want)
			})
		}
	}
	s.wantUnchanged(t, rows)
}

// URLs come without a body; the buyer is guest. In a path ANN stands for the id of ann's order.
func TestBadURLs(t *testing.T) { //nolint:tparallel // the rows are compared after all of them
	t.Parallel()
	s, anns := stocked(t, nil)
	rows := s.rows(t)
	table := map[string][]string{
		"404 not-found": {
			"GET /", "GET /v2/orders", "GET /v1/skus/", "GET //v1/skus", "GET /v1/skus/../audit", "GET /v1/skus%2F", "GET /V1/SKUS",
			"POST /v1/orders/ANN/refund", "POST /v1/skus/mug/movements", "GET /v1/audit", "GET /metrics", "GET /debug/pprof/", "GET /v1/strategies",
		},
		"404 sku-not-found": {
			"GET /v1/skus/cup", "GET /v1/skus/MUG", "GET /v1/skus/mug%00", "GET /v1/skus/mug%0d%0aAllow:%20x", "GET /v1/skus/mug%2Fmug",
		},
		"404 order-not-found": {
			"GET /v1/orders/1", "GET /v1/orders/0190d0c0-0000-7000-8000-000000000000", "GET /v1/orders/%ff", "GET /v1/orders/ANN",
			"POST /v1/orders/ANN/pay", "POST /v1/orders/ANN/cancel", "GET /v1/orders/urn:uuid:ANN", "POST /v1/orders/ANN%00/pay",
		},
		"400 malformed": {
			"GET /v1/skus?x", "GET /v1/skus?Limit=1", "GET /v1/orders?status=paid", "POST /v1/orders?dry_run=1", "POST /v1/orders/ANN/cancel?%zz",
		},
	}
	for _, list := range []string{"GET /v1/skus", "GET /v1/orders"} {
		for _, query := range []string{
			"limit=0", "limit=101", "limit=1.5", "limit=1&limit=2", "cursor=mug", "cursor=b3JkZXIxOg==", "cursor=" + times("A", 100_000),
		} {
			table["400 malformed"] = append(table["400 malformed"], list+"?"+query)
		}
	}
	for want, calls := range table {
		for _, call := range calls {
			t.Run(fmt.Sprintf("%s %.80s", want, call), func(t *testing.T) {
				wantFinal(t, s.call(t, strings.ReplaceAll(call, "ANN", anns), ""), want)
			})
		}
	}
	s.wantUnchanged(t, rows)
}

// Each path of both listeners is asked with each method that it does not take. The answer lists the methods that it takes.
func TestBadMethods(t *testing.T) {
	t.Parallel()
	s, anns := stocked(t, nil)
	rows := s.rows(t)
	for _, listener := range []http.Handler{s.handler, s.operator} {
		taken := map[string][]string{}
		for _, route := range listener.(*gin.Engine).Routes() {
			taken[route.Path] = append(taken[route.Path], route.Method)
		}
		for path, methods := range taken {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "SELL", "get"} {
				if slices.Contains(methods, method) {
					continue
				}
				call := method + " " + strings.NewReplacer(":id", anns, ":sku", "mug", ":profile", "heap").Replace(path)
				w := s.callOn(t, listener, call, "", asOperator)
				wantFinal(t, w, "405 method-not-allowed")
				allowed := strings.Split(w.Header().Get("Allow"), ", ")
				if slices.Sort(allowed); !slices.Equal(allowed, slices.Sorted(slices.Values(methods))) {
					t.Errorf("%s: got Allow %v, want %v", call, allowed, methods)
				}
			}
		}
	}
	s.wantUnchanged(t, rows)
}

// "Otherwise the answer is a 401, and nothing else of the request is read", and Shop-Buyer is ignored. "Every request
// to the operator's API except GET /healthz must show the operator's token; otherwise the answer is a 401", whatever
// the path.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	s, anns := stocked(t, withTokens(t))
	rows := s.rows(t)
	signed := func(name string, value any) string {
		now := time.Now().Unix()
		claims := jwt.MapClaims{"sub": "ann", "aud": "shop:buyer", "iat": now, "nbf": now, "exp": now + 3600}
		claims[name] = value
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(shopSecret))
		testserver.Must(t, err)
		return "Authorization: Bearer " + text
	}
	good := shows(t, shopSecret, "ann")
	for _, c := range []struct {
		handler http.Handler
		realm   string
		calls   []string
		missing [][]string // headers
		bad     [][]string
	}{
		{
			s.handler, "shop",
			[]string{"POST /v1/orders", "GET /v1/orders", "GET /v1/orders/ANN?x", "POST /v1/orders/ANN/pay", "POST /v1/orders/no-uuid/cancel"},
			[][]string{
				nil, {"Shop-Buyer: ann"}, {"Authorization: Bearer "}, {"Authorization: Basic YW5uOmFubg=="}, {strings.Replace(good, "Bearer ", "", 1)},
			},
			[][]string{
				{"Authorization: Bearer ann"}, {good, good}, {good + ", " + good}, {good[:len(good)-3], "Shop-Buyer: ann"},
				{shows(t, otherSecret, "ann")}, {signed("aud", "shop:operator")}, {signed("exp", 2)}, {signed("sub", "../ann")}, {asOperator},
			},
		}, {
			s.operator, "shop operator",
			[]string{
				"POST /v1/skus", "PATCH /v1/skus/mug", "POST " + movesOfMug, "GET /metrics", "GET /debug/pprof/heap", "HEAD /v1/audit",
				"GET /nowhere", "PUT /v1/audit", "POST /healthz",
			},
			[][]string{nil, {"Authorization: Basic b3BlcmF0b3I6"}, {"Authorization: " + operatorToken}},
			[][]string{
				{asOperator, asOperator}, {asOperator[:len(asOperator)-1]}, {asOperator + "x"}, {shows(t, shopSecret, "operator")},
				{"Authorization: Bearer " + shopSecret},
			},
		},
	} {
		refused := func(call string, headers []string, want, challenge string) {
			w := s.callOn(t, c.handler, strings.ReplaceAll(call, "ANN", anns), "no JSON", headers...)
			wantFinal(t, w, want)
			if got := w.Header(); got.Get("WWW-Authenticate") != challenge || got.Get("Allow") != "" {
				t.Errorf("%s %.80q: got header %v, want the challenge %s and no Allow", call, headers, got, challenge)
			}
		}
		for _, call := range c.calls {
			for _, headers := range c.missing {
				refused(call, headers, "401 no-token", fmt.Sprintf("Bearer realm=%q", c.realm))
			}
			for _, headers := range c.bad {
				refused(call, headers, "401 bad-token", fmt.Sprintf("Bearer realm=%q, error=\"invalid_token\"", c.realm))
			}
		}
	}
	p := wantProblem(t, s.call(t, "GET /v1/orders", "", signed("sub", "auth0|ann")), "401 bad-token")
	if !strings.Contains(fmt.Sprint(p["detail"]), order.BuyerRule) {
		t.Errorf("got %v, want which names a buyer may have", p)
	}
	s.wantUnchanged(t, rows)
}

// The operator's API, whose deliveries and SKUs may also be bad.
func TestBadRequests_operator(t *testing.T) {
	t.Parallel()
	const used = "Idempotency-Key: used-key"
	s, _ := stocked(t, withTokens(t))
	wantStatus(t, s.operate(t, "POST "+movesOfMug, moreMugs, used), http.StatusCreated)
	rows := s.rows(t)
	refuse := func(want, call, body string, headers ...string) {
		t.Helper()
		t.Run(fmt.Sprintf("%s %.60s %.60q", want, call, body), func(t *testing.T) {
			wantFinal(t, s.callOn(t, s.operator, call, body, append([]string{asOperator}, headers...)...), want)
		})
	}
	const price = `"price":{"minor":1250,"currency":"EUR"}`
	bodies := map[string]map[string][]string{
		"POST " + movesOfMug: {
			"400 malformed": {"", moreMugs + moreMugs, `{"sku":"hat","kind":"supply","units":5}`, `{"kind":null,"units":5}`, delivered("1.5")},
			"413 too-large": {`{"kind":"` + times("s", 70_000) + `"}`},
			// The last is on top of those that are there.
			"422 invalid-sku": {"{}", `{"kind":"reserve","units":5}`, delivered("0"), delivered("1000000001"), delivered("1000000000")},
		},
		"POST /v1/skus": {
			"400 malformed":  {"", `{"sku":"cup",` + price + `,"sold":1}`, `{"sku":"cup","price":1250}`, `{"sku":"cup",` + price + `,"units":1.5}`},
			"413 too-large":  {`{"sku":"` + times("c", 70_000) + `"}`},
			"409 sku-exists": {strings.Replace(newSKU, "cup", "mug", 1)},
			"422 invalid-sku": {"{}", `{"sku":"CUP",` + price + `}`, `{"sku":"cup"}`, `{"sku":"cup","price":{"currency":"EUR"}}`,
				`{"sku":"cup","price":{"minor":-1,"currency":"EUR"}}`, `{"sku":"cup","price":{"minor":1,"currency":"eur"}}`,
				`{"sku":"cup",` + price + `,"units":1000000001}`, `{"sku":"cup",` + price + `,"limit_per_buyer":-1}`},
		},
		"PATCH /v1/skus/mug": {
			"400 malformed":   {"", `{"limit_per_buyer":2,"price":1}`, `{"limit_per_buyer":1e400}`},
			"422 invalid-sku": {"{}", `{"limit_per_buyer":-1}`, `{"limit_per_buyer":1000000001}`},
		},
	}
	for call, table := range bodies {
		for want, all := range table {
			for _, body := range all {
				refuse(want, call, body, asJSON, withKey)
			}
		}
		refuse("415 media-type", call, newSKU, withKey)
		refuse("400 malformed", call+"?dry_run=1", newSKU, withKey, asJSON)
	}
	refuse("400 key-missing", "POST "+movesOfMug, moreMugs, asJSON)
	refuse("400 key-invalid", "POST "+movesOfMug, moreMugs, asJSON, "Idempotency-Key: ключ")
	refuse("400 malformed", "POST "+movesOfMug, moreMugs, asJSON, withKey, withKey)
	refuse("422 key-reused", "POST "+movesOfMug, delivered("6"), asJSON, used)
	refuse("422 invalid-sku", "POST "+movesOfMug, delivered("0"), asJSON, used)
	for _, sku := range []string{"cup", "MUG", "mug%00", "mug%2Fmug"} {
		refuse("404 sku-not-found", "POST /v1/skus/"+sku+"/movements", moreMugs, asJSON, used)
		refuse("404 sku-not-found", "GET /v1/skus/"+sku+"/movements", "")
		refuse("404 sku-not-found", "PATCH /v1/skus/"+sku, `{"limit_per_buyer":1}`, asJSON)
		refuse("404 sku-not-found", "GET /v1/audit?sku="+sku, "")
	}
	for want, calls := range map[string][]string{
		"400 malformed": {"GET " + movesOfMug + "?limit=0", "GET " + movesOfMug + "?kind=sell", "GET /v1/audit?sku=mug&sku=cup"},
		"404 not-found": {"GET /", "GET /debug/pprof/gold", "GET /debug/vars", "GET /v1/orders", "GET /readyz", "GET /v1/strategies"},
	} {
		for _, call := range calls {
			refuse(want, call, "")
		}
	}
	s.wantUnchanged(t, rows)
}

// "`detail` is for people"
func TestProblem_details(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "mug", 5)
	for _, c := range [][]string{
		{"POST /v1/orders", line("6"), `sku "mug": not enough units are available`},
		{"POST /v1/orders", line("0"), "invalid order: line 1: quantity is less than 1"},
		{"POST /v1/orders", line("1.5"), "malformed request: body: cannot unmarshal JSON number 1.5 within \"/lines/0/quantity\": want a whole number of at most 18 digits"},
		{"POST /v1/orders", line(`"1"`), `malformed request: body: cannot unmarshal JSON string within "/lines/0/quantity": want a whole number of at most 18 digits`},
		{"POST /v1/orders", "", "malformed request: the body is empty: want a JSON object"},
		{"POST /v1/orders", lines(`{"sku":"cup","quantity":1}`), `sku "cup": unknown SKU`},
		{"POST /v1/orders", `{"lines":[],"price":1}`, `malformed request: body: cannot unmarshal JSON string: unknown object member name "price"`},
		{"POST /v1/orders", `{"lines":[],"lines":[]}`, `malformed request: body: duplicate object member name "lines"`},
		{"POST /v1/orders", `{"lines":null}`, `malformed request: body: cannot unmarshal within "/lines": null is not allowed: leave the field out`},
		{"GET /v1/skus?limt=1", "", `malformed request: parameter "limt": this call takes cursor, limit`},
		{"POST /v1/orders", goodOrder, "malformed request: the header Idempotency-Key is sent 2 times: send it once", "Idempotency-Key: key-2"},
	} {
		if got := unmarshal[struct{ Detail string }](t, s.call(t, c[0], c[1], append(c[3:], asJSON, withKey)...)); got.Detail != c[2] {
			t.Errorf("%s %s: got detail %q, want %q", c[0], c[1], got.Detail, c[2])
		}
	}
	s = newShop(t, withTokens(t))
	ann := shows(t, shopSecret, "ann")
	if got := unmarshal[struct{ Detail string }](t, s.call(t, "GET /v1/orders", "", ann, ann)); got.Detail != "bad token: the header Authorization is repeated: send it once" {
		t.Errorf("got detail %q, want a detail that says Authorization is repeated", got.Detail)
	}
}

// The spellings of a media type that clients use.
func TestContentType(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	s.supply(t, "mug", 100)
	for i, media := range []string{
		"application/json", "Application/JSON", "application/json;", "application/json; charset=utf-8", "application/json;charset=UTF-8",
		`application/json; charset="utf-8"`, "application/json; charset=utf8", "application/json;CHARSET=UTF8", "application/json; v=1; charset=utf-8;",
	} {
		w := s.call(t, "POST /v1/orders", goodOrder, "Content-Type: "+media, fmt.Sprint("Idempotency-Key: key-", i))
		if w.Code != http.StatusCreated {
			t.Errorf("%s: got %d %s, want it taken", media, w.Code, w.Body)
		}
	}
}
