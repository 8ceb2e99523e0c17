package orderhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const goodOrder = `{"lines":[{"sku":"mug","quantity":1}]}`

// line returns an order whose quantity is the given text.
func line(quantity string) string {
	return `{"lines":[{"sku":"mug","quantity":` + quantity + `}]}`
}

// "Bad input never is a 5xx", and it changes no row.
func TestPlaceOrder_badBodies(t *testing.T) {
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	for name, c := range map[string]struct {
		body   string
		status int
		slug   string
	}{
		"empty":                  {"", 400, "malformed"},
		"blank":                  {" \n\t", 400, "malformed"},
		"not JSON":               {"sku=mug&quantity=1", 400, "malformed"},
		"XML":                    {"<order/>", 400, "malformed"},
		"cut off":                {`{"lines":[{"sku":"mug","quan`, 400, "malformed"},
		"object left open":       {`{"lines":[]`, 400, "malformed"},
		"trailing text":          {goodOrder + "x", 400, "malformed"},
		"trailing brace":         {goodOrder + "}", 400, "malformed"},
		"two objects":            {goodOrder + goodOrder, 400, "malformed"},
		"array":                  {"[" + goodOrder + "]", 400, "malformed"},
		"null":                   {"null", 400, "malformed"},
		"string":                 {`"lines"`, 400, "malformed"},
		"number":                 {"1", 400, "malformed"},
		"true":                   {"true", 400, "malformed"},
		"byte order mark":        {"\ufeff" + goodOrder, 400, "malformed"},
		"not UTF-8":              {"{\"lines\":[{\"sku\":\"m\xffg\",\"quantity\":1}]}", 400, "malformed"},
		"NUL byte":               {"{\"lines\":[{\"sku\":\"m\x00g\",\"quantity\":1}]}", 400, "malformed"},
		"control character":      {"{\"lines\":[{\"sku\":\"m\tg\",\"quantity\":1}]}", 400, "malformed"},
		"comment":                {`{"lines":[{"sku":"mug","quantity":1}]/* please */}`, 400, "malformed"},
		"single quotes":          {`{'lines':[]}`, 400, "malformed"},
		"trailing comma":         {`{"lines":[{"sku":"mug","quantity":1},]}`, 400, "malformed"},
		"unknown field":          {`{"lines":[{"sku":"mug","quantity":1}],"discount":100}`, 400, "malformed"},
		"unknown line field":     {`{"lines":[{"sku":"mug","quantity":1,"price":1}]}`, 400, "malformed"},
		"repeated field":         {`{"lines":[{"sku":"mug","quantity":1}],"lines":[{"sku":"mug","quantity":5}]}`, 400, "malformed"},
		"repeated line field":    {`{"lines":[{"sku":"mug","quantity":1,"quantity":5}]}`, 400, "malformed"},
		"repeated, escaped":      {`{"lines":[{"sku":"mug","quantity":1,"quantit\u0079":5}]}`, 400, "malformed"},
		"other case":             {`{"Lines":[{"sku":"mug","quantity":1}]}`, 400, "malformed"},
		"other case, twice":      {`{"lines":[{"sku":"mug","SKU":"cup","quantity":1}]}`, 400, "malformed"},
		"long s":                 {`{"lines":[{"ſku":"mug","quantity":1}]}`, 400, "malformed"},
		"empty field name":       {`{"":1,"lines":[{"sku":"mug","quantity":1}]}`, 400, "malformed"},
		"lines null":             {`{"lines":null}`, 400, "malformed"},
		"lines object":           {`{"lines":{"sku":"mug","quantity":1}}`, 400, "malformed"},
		"lines string":           {`{"lines":"mug"}`, 400, "malformed"},
		"line null":              {`{"lines":[null]}`, 400, "malformed"},
		"line array":             {`{"lines":[["mug",1]]}`, 400, "malformed"},
		"line string":            {`{"lines":["mug"]}`, 400, "malformed"},
		"sku null":               {`{"lines":[{"sku":null,"quantity":1}]}`, 400, "malformed"},
		"sku number":             {`{"lines":[{"sku":7,"quantity":1}]}`, 400, "malformed"},
		"sku array":              {`{"lines":[{"sku":["mug"],"quantity":1}]}`, 400, "malformed"},
		"sku object":             {`{"lines":[{"sku":{"name":"mug"},"quantity":1}]}`, 400, "malformed"},
		"quantity null":          {line("null"), 400, "malformed"},
		"quantity string":        {line(`"1"`), 400, "malformed"},
		"quantity true":          {line("true"), 400, "malformed"},
		"quantity float":         {line("1.5"), 400, "malformed"},
		"quantity whole float":   {line("1.0"), 400, "malformed"},
		"quantity exponent":      {line("1e0"), 400, "malformed"},
		"quantity 1e400":         {line("1e400"), 400, "malformed"},
		"quantity NaN":           {line("NaN"), 400, "malformed"},
		"quantity Infinity":      {line("-Infinity"), 400, "malformed"},
		"quantity hexadecimal":   {line("0x1"), 400, "malformed"},
		"quantity leading zero":  {line("01"), 400, "malformed"},
		"quantity plus":          {line("+1"), 400, "malformed"},
		"quantity array":         {line("[1]"), 400, "malformed"},
		"deep arrays":            {`{"lines":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 400, "malformed"},
		"deep objects":           {strings.Repeat(`{"lines":`, 5_000) + "1" + strings.Repeat("}", 5_000), 400, "malformed"},
		"too large":              {`{"lines":[{"sku":"` + strings.Repeat("m", 64<<10) + `","quantity":1}]}`, 413, "too-large"},
		"too large, blank":       {goodOrder + strings.Repeat(" ", 64<<10), 413, "too-large"},
		"no field":               {`{}`, 422, "invalid-order"},
		"no line":                {`{"lines":[]}`, 422, "invalid-order"},
		"too many lines":         {`{"lines":[{"sku":"mug","quantity":1},{"sku":"cup","quantity":1}]}`, 422, "invalid-order"},
		"very many lines":        {`{"lines":[` + strings.Repeat(`{},`, 10_000) + `{}]}`, 422, "invalid-order"},
		"empty line":             {`{"lines":[{}]}`, 422, "invalid-order"},
		"no quantity":            {`{"lines":[{"sku":"mug"}]}`, 422, "invalid-order"},
		"quantity zero":          {line("0"), 422, "invalid-order"},
		"quantity minus zero":    {line("-0"), 422, "invalid-order"},
		"quantity negative":      {line("-1"), 422, "invalid-order"},
		"quantity 1001":          {line("1001"), 422, "invalid-order"},
		"quantity huge":          {line("9223372036854775807"), 422, "invalid-order"},
		"quantity beyond int64":  {line("9223372036854775808"), 422, "invalid-order"},
		"quantity wraps to 1":    {line("18446744073709551617"), 422, "invalid-order"},
		"quantity far below":     {line("-99999999999999999999999"), 422, "invalid-order"},
		"no sku":                 {`{"lines":[{"quantity":1}]}`, 422, "unknown-sku"},
		"unknown sku":            {`{"lines":[{"sku":"cup","quantity":1}]}`, 422, "unknown-sku"},
		"sku in capitals":        {`{"lines":[{"sku":"MUG","quantity":1}]}`, 422, "unknown-sku"},
		"sku with space":         {`{"lines":[{"sku":"mug ","quantity":1}]}`, 422, "unknown-sku"},
		"sku with quote":         {`{"lines":[{"sku":"mug' OR '1'='1","quantity":1}]}`, 422, "unknown-sku"},
		"sku with escaped NUL":   {`{"lines":[{"sku":"mug\u0000","quantity":1}]}`, 422, "unknown-sku"},
		"sku with half a letter": {`{"lines":[{"sku":"\ud800","quantity":1}]}`, 422, "unknown-sku"},
		"sku too long":           {`{"lines":[{"sku":"` + strings.Repeat("m", 10_000) + `","quantity":1}]}`, 422, "unknown-sku"},
		"more than there are":    {line("6"), 409, "sold-out"},
	} {
		t.Run(name, func(t *testing.T) {
			problem := wantProblem(t, b.buy(t, "key-1", c.body), c.status, c.slug)
			if problem["retry_safe"] != false {
				t.Error("got retry_safe, want none: the same request is refused again")
			}
			if detail := problem["detail"].(string); len(detail) > 300 {
				t.Errorf("got a detail of %d characters, want a short one", len(detail))
			}
		})
	}
	b.wantUntouched(t, "mug", 5)
}

func TestPlaceOrder_badHeaders(t *testing.T) {
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	const key = "Idempotency-Key: key-1"
	for name, c := range map[string]struct {
		headers []string
		status  int
		slug    string
	}{
		"no key":                  {[]string{asJSON}, 400, "key-missing"},
		"empty key":               {[]string{asJSON, "Idempotency-Key: "}, 400, "key-missing"},
		"long key":                {[]string{asJSON, "Idempotency-Key: " + strings.Repeat("k", 256)}, 400, "key-invalid"},
		"key with tab":            {[]string{asJSON, "Idempotency-Key: a\tb"}, 400, "key-invalid"},
		"key not ASCII":           {[]string{asJSON, "Idempotency-Key: schlüssel"}, 400, "key-invalid"},
		"key not UTF-8":           {[]string{asJSON, "Idempotency-Key: a\xff"}, 400, "key-invalid"},
		"two keys":                {[]string{asJSON, key, "Idempotency-Key: key-2"}, 400, "malformed"},
		"no media type":           {[]string{key}, 415, "media-type"},
		"form":                    {[]string{key, "Content-Type: application/x-www-form-urlencoded"}, 415, "media-type"},
		"text":                    {[]string{key, "Content-Type: text/plain"}, 415, "media-type"},
		"broken media type":       {[]string{key, "Content-Type: application/json; charset="}, 415, "media-type"},
		"almost JSON":             {[]string{key, "Content-Type: application/jsonp"}, 415, "media-type"},
		"UTF-16":                  {[]string{key, "Content-Type: application/json; charset=utf-16"}, 415, "media-type"},
		"compressed":              {[]string{key, asJSON, "Content-Encoding: gzip"}, 415, "media-type"},
		"empty buyer":             {[]string{key, asJSON, "Shop-Buyer: "}, 422, "invalid-order"},
		"buyer with space":        {[]string{key, asJSON, "Shop-Buyer: a b"}, 422, "invalid-order"},
		"buyer with quote":        {[]string{key, asJSON, "Shop-Buyer: a'b"}, 422, "invalid-order"},
		"buyer too long":          {[]string{key, asJSON, "Shop-Buyer: " + strings.Repeat("b", 65)}, 422, "invalid-order"},
		"buyer not UTF-8":         {[]string{key, asJSON, "Shop-Buyer: \xff"}, 422, "invalid-order"},
		"two buyers":              {[]string{key, asJSON, "Shop-Buyer: ann", "Shop-Buyer: bob"}, 400, "malformed"},
		"strategy without lab":    {[]string{key, asJSON, "Shop-Strategy: none"}, 400, "lab-off"},
		"default without lab":     {[]string{key, asJSON, "Shop-Strategy: redis"}, 400, "lab-off"},
		"no strategy without lab": {[]string{key, asJSON, "Shop-Strategy: "}, 400, "lab-off"},
		"think without lab":       {[]string{key, asJSON, "Shop-Think: 2ms"}, 400, "lab-off"},
	} {
		t.Run(name, func(t *testing.T) {
			problem := wantProblem(t, b.call(t, http.MethodPost, "/v1/orders", goodOrder, c.headers...), c.status, c.slug)
			if c.slug == "lab-off" && !strings.Contains(fmt.Sprint(problem["detail"]), "--lab") {
				t.Errorf("got detail %q, want it to say how to switch teaching mode on", problem["detail"])
			}
		})
	}
	b.wantUntouched(t, "mug", 5)
}
