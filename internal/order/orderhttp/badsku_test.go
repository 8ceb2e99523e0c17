package orderhttp_test

import (
	"net/http"
	"strings"
)

// badSKUs are bodies and headers of POST /v1/skus.
func badSKUs() map[string]badRequest {
	const price = `"price":{"minor":1250,"currency":"EUR"}`
	named := func(name string) string { return `{"sku":` + name + `,` + price + `,"units":5}` }
	priced := func(price string) string { return `{"sku":"cup","price":` + price + `,"units":5}` }
	limited := func(limit string) string { return `{"sku":"cup",` + price + `,"limit_per_buyer":` + limit + `}` }
	counted := func(units string) string { return `{"sku":"cup",` + price + `,"units":` + units + `}` }
	media := []string{asJSON}
	table := map[string]badRequest{}
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		slug    string
	}{
		"empty":             {"", media, 400, "malformed"},
		"not JSON":          {"cup", media, 400, "malformed"},
		"array":             {"[" + newSKU + "]", media, 400, "malformed"},
		"two objects":       {newSKU + newSKU, media, 400, "malformed"},
		"oversize":          {named(`"` + strings.Repeat("c", 70_000) + `"`), media, 413, "too-large"},
		"unknown field":     {`{"sku":"cup",` + price + `,"sold":1}`, media, 400, "malformed"},
		"sku twice":         {`{"sku":"cup","sku":"cap",` + price + `}`, media, 400, "malformed"},
		"nothing":           {"{}", media, 422, "invalid-sku"},
		"no sku":            {`{` + price + `,"units":5}`, media, 422, "invalid-sku"},
		"sku empty":         {named(`""`), media, 422, "invalid-sku"},
		"sku in capitals":   {named(`"CUP"`), media, 422, "invalid-sku"},
		"sku a path":        {named(`"../cup"`), media, 422, "invalid-sku"},
		"sku with NUL":      {named(`"cup\u0000"`), media, 422, "invalid-sku"},
		"sku of 65 letters": {named(`"` + strings.Repeat("c", 65) + `"`), media, 422, "invalid-sku"},
		"sku look-alike":    {named(`"сup"`), media, 422, "invalid-sku"},
		"sku a number":      {named("1"), media, 400, "malformed"},
		"sku null":          {named("null"), media, 400, "malformed"},
		"sku taken":         {named(`"mug"`), media, 409, "sku-exists"},
		"no price":          {`{"sku":"cup","units":5}`, media, 422, "invalid-sku"},
		"price null":        {priced("null"), media, 400, "malformed"},
		"price a number":    {priced("1250"), media, 400, "malformed"},
		"price empty":       {priced("{}"), media, 422, "invalid-sku"},
		"price in floats":   {priced(`{"minor":12.5,"currency":"EUR"}`), media, 400, "malformed"},
		"price 1e400":       {priced(`{"minor":1e400,"currency":"EUR"}`), media, 400, "malformed"},
		"price negative":    {priced(`{"minor":-1,"currency":"EUR"}`), media, 422, "invalid-sku"},
		"price too high":    {priced(`{"minor":100000000001,"currency":"EUR"}`), media, 422, "invalid-sku"},
		"price over int64":  {priced(`{"minor":99999999999999999999,"currency":"EUR"}`), media, 422, "invalid-sku"},
		"no currency":       {priced(`{"minor":1250}`), media, 422, "invalid-sku"},
		"no minor":          {priced(`{"currency":"EUR"}`), media, 422, "invalid-sku"},
		"minor null":        {priced(`{"minor":null,"currency":"EUR"}`), media, 400, "malformed"},
		"currency small":    {priced(`{"minor":1250,"currency":"eur"}`), media, 422, "invalid-sku"},
		"currency a sign":   {priced(`{"minor":1250,"currency":"€"}`), media, 422, "invalid-sku"},
		"currency a number": {priced(`{"minor":1250,"currency":978}`), media, 400, "malformed"},
		"currency twice":    {priced(`{"minor":1250,"currency":"EUR","currency":"USD"}`), media, 400, "malformed"},
		"units negative":    {counted("-1"), media, 422, "invalid-sku"},
		"units too many":    {counted("1000000001"), media, 422, "invalid-sku"},
		"units over int64":  {counted("99999999999999999999"), media, 422, "invalid-sku"},
		"units float":       {counted("1.5"), media, 400, "malformed"},
		"units NaN":         {counted("NaN"), media, 400, "malformed"},
		"units 1e400":       {counted("1e400"), media, 400, "malformed"},
		"units text":        {counted(`"5"`), media, 400, "malformed"},
		"limit negative":    {limited("-1"), media, 422, "invalid-sku"},
		"limit too many":    {limited("1000000001"), media, 422, "invalid-sku"},
		"limit over int64":  {limited("99999999999999999999"), media, 422, "invalid-sku"},
		"limit float":       {limited("1.5"), media, 400, "malformed"},
		"limit 1e400":       {limited("1e400"), media, 400, "malformed"},
		"limit text":        {limited(`"5"`), media, 400, "malformed"},
		"limit null":        {limited("null"), media, 400, "malformed"},
		"no media type":     {newSKU, nil, 415, "media-type"},
		"form":              {newSKU, []string{"Content-Type: application/x-www-form-urlencoded"}, 415, "media-type"},
		"XML":               {newSKU, []string{"Content-Type: application/xml"}, 415, "media-type"},
		"two media types":   {newSKU, []string{asJSON, asJSON}, 400, "malformed"},
		"compressed":        {newSKU, []string{asJSON, "Content-Encoding: br"}, 415, "media-type"},
	} {
		table["sku: "+name] = badRequest{
			method: http.MethodPost, target: "/v1/skus", headers: c.headers, body: c.body, status: c.status, slug: c.slug,
		}
	}
	return table
}

// badSKUChanges are requests to PATCH /v1/skus/{sku}.
func badSKUChanges() map[string]badRequest {
	limit := func(n string) string { return `{"limit_per_buyer":` + n + `}` }
	const mug = "/v1/skus/mug"
	table := map[string]badRequest{
		"change: no media type": {
			method: http.MethodPatch, target: mug, body: limit("1"), status: 415, slug: "media-type",
		},
	}
	for name, c := range map[string]struct {
		target, body string
		status       int
		slug         string
	}{
		"unknown sku":   {"/v1/skus/cup", limit("1"), 404, "sku-not-found"},
		"sku, capitals": {"/v1/skus/MUG", limit("1"), 404, "sku-not-found"},
		"sku, NUL":      {"/v1/skus/mug%00", limit("1"), 404, "sku-not-found"},
		"empty":         {mug, "", 400, "malformed"},
		"nothing":       {mug, "{}", 422, "invalid-sku"},
		"null":          {mug, limit("null"), 400, "malformed"},
		"text":          {mug, limit(`"2"`), 400, "malformed"},
		"float":         {mug, limit("2.5"), 400, "malformed"},
		"whole float":   {mug, limit("2.0"), 400, "malformed"},
		"1e400":         {mug, limit("1e400"), 400, "malformed"},
		"NaN":           {mug, limit("NaN"), 400, "malformed"},
		"negative":      {mug, limit("-1"), 422, "invalid-sku"},
		"too many":      {mug, limit("1000000001"), 422, "invalid-sku"},
		"beyond int64":  {mug, limit("99999999999999999999"), 422, "invalid-sku"},
		"another field": {mug, `{"limit_per_buyer":2,"price":1}`, 400, "malformed"},
		"twice":         {mug, `{"limit_per_buyer":2,"limit_per_buyer":3}`, 400, "malformed"},
	} {
		table["change: "+name] = badRequest{
			method: http.MethodPatch, target: c.target, headers: []string{asJSON}, body: c.body, status: c.status, slug: c.slug,
		}
	}
	return table
}
