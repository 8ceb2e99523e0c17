package orderhttp_test

import (
	"net/http"
	"strings"
)

// badHeaders come with a good order.
func badHeaders() map[string]badRequest {
	const key = withKey
	table := map[string]badRequest{}
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
		"key with NUL":            {[]string{asJSON, "Idempotency-Key: a\x00b"}, 400, "key-invalid"},
		"key with line break":     {[]string{asJSON, "Idempotency-Key: a\r\nShop-Buyer: bob"}, 400, "key-invalid"},
		"key with DEL":            {[]string{asJSON, "Idempotency-Key: a\x7f"}, 400, "key-invalid"},
		"same key twice":          {[]string{asJSON, key, key}, 400, "malformed"},
		"oversize key":            {[]string{asJSON, "Idempotency-Key: " + strings.Repeat("k", 100_000)}, 400, "key-invalid"},
		"two media types":         {[]string{key, asJSON, "Content-Type: text/plain"}, 400, "malformed"},
		"media types in a list":   {[]string{key, "Content-Type: application/json, text/plain"}, 415, "media-type"},
		"any media type":          {[]string{key, "Content-Type: */*"}, 415, "media-type"},
		"problem":                 {[]string{key, "Content-Type: application/problem+json"}, 415, "media-type"},
		"JSON of a vendor":        {[]string{key, "Content-Type: application/vnd.shop+json"}, 415, "media-type"},
		"XML":                     {[]string{key, "Content-Type: application/xml"}, 415, "media-type"},
		"multipart":               {[]string{key, "Content-Type: multipart/form-data; boundary=x"}, 415, "media-type"},
		"charset twice":           {[]string{key, "Content-Type: application/json; charset=utf-8; charset=utf-16"}, 415, "media-type"},
		"charset latin 1":         {[]string{key, "Content-Type: application/json; charset=iso-8859-1"}, 415, "media-type"},
		"compressed by brotli":    {[]string{key, asJSON, "Content-Encoding: br"}, 415, "media-type"},
		"compressed twice":        {[]string{key, asJSON, "Content-Encoding: gzip, gzip"}, 415, "media-type"},
		"two encodings":           {[]string{key, asJSON, "Content-Encoding: identity", "Content-Encoding: gzip"}, 400, "malformed"},
		"buyer with line break":   {[]string{key, asJSON, "Shop-Buyer: ann\nbob"}, 422, "invalid-order"},
		"buyer a path":            {[]string{key, asJSON, "Shop-Buyer: ../ann"}, 422, "invalid-order"},
		"buyers in a list":        {[]string{key, asJSON, "Shop-Buyer: ann, bob"}, 422, "invalid-order"},
		"two strategies":          {[]string{key, asJSON, "Shop-Strategy: none", "Shop-Strategy: redis"}, 400, "malformed"},
	} {
		table["header: "+name] = badRequest{
			method: http.MethodPost, target: "/v1/orders", headers: c.headers,
			body: goodOrder, status: c.status, slug: c.slug,
		}
	}
	return table
}

// badLessons are the headers of teaching mode, with a good order.
func badLessons() map[string]badRequest {
	table := map[string]badRequest{}
	for name, c := range map[string]struct {
		header string
		status int
		slug   string
	}{
		"unknown strategy":  {"Shop-Strategy: hope", 400, "unknown-strategy"},
		"other case":        {"Shop-Strategy: Redis", 400, "unknown-strategy"},
		"empty strategy":    {"Shop-Strategy: ", 400, "malformed"},
		"long strategy":     {"Shop-Strategy: " + strings.Repeat("s", 5_000), 400, "unknown-strategy"},
		"think without s":   {"Shop-Think: 2", 400, "malformed"},
		"think a word":      {"Shop-Think: long", 400, "malformed"},
		"think empty":       {"Shop-Think: ", 400, "malformed"},
		"think overflow":    {"Shop-Think: 9999999999h", 400, "malformed"},
		"think NaN":         {"Shop-Think: NaNs", 400, "malformed"},
		"think negative":    {"Shop-Think: -1ms", 422, "invalid-order"},
		"think over limit":  {"Shop-Think: 1001ms", 422, "invalid-order"},
		"think over by far": {"Shop-Think: 24h", 422, "invalid-order"},
		"think infinite":    {"Shop-Think: Infs", 400, "malformed"},
		"strategy with NUL": {"Shop-Strategy: none\x00", 400, "unknown-strategy"},
	} {
		table["lesson: "+name] = badRequest{
			shop: labShop, method: http.MethodPost, target: "/v1/orders", headers: []string{asJSON, withKey, c.header},
			body: goodOrder, status: c.status, slug: c.slug,
		}
	}
	return table
}
