package orderhttp_test

import (
	"net/http"
	"strings"
)

// delivered returns a delivery of so many units.
func delivered(units string) string { return `{"kind":"supply","units":` + units + `}` }

// badDeliveryBodies are deliveries of mugs, of which there are 10, with good headers.
func badDeliveryBodies() map[string]badRequest {
	table := map[string]badRequest{}
	for name, c := range map[string]struct {
		body   string
		status int
		slug   string
	}{
		"empty":               {"", 400, "malformed"},
		"not JSON":            {"kind=supply&units=5", 400, "malformed"},
		"cut off":             {`{"kind":"supply","uni`, 400, "malformed"},
		"trailing text":       {moreMugs + "x", 400, "malformed"},
		"two objects":         {moreMugs + moreMugs, 400, "malformed"},
		"array":               {"[" + moreMugs + "]", 400, "malformed"},
		"null":                {"null", 400, "malformed"},
		"not UTF-8":           {"{\"kind\":\"suppl\xff\",\"units\":5}", 400, "malformed"},
		"UTF-16":              {inUTF16(moreMugs, false), 400, "malformed"},
		"deep":                {`{"kind":` + strings.Repeat("[", 60_000), 400, "malformed"},
		"oversize":            {`{"kind":"` + strings.Repeat("s", 70_000) + `"}`, 413, "too-large"},
		"unknown field":       {`{"kind":"supply","units":5,"sold":5}`, 400, "malformed"},
		"sku in the body":     {`{"sku":"hat","kind":"supply","units":5}`, 400, "malformed"},
		"other case":          {`{"Kind":"supply","units":5}`, 400, "malformed"},
		"units twice":         {`{"kind":"supply","units":5,"units":6}`, 400, "malformed"},
		"units twice, alike":  {`{"kind":"supply","units":5,"units":5}`, 400, "malformed"},
		"kind twice":          {`{"kind":"reserve","kind":"supply","units":5}`, 400, "malformed"},
		"twice, escaped":      {`{"kind":"supply","units":5,"unit\u0073":6}`, 400, "malformed"},
		"nothing":             {"{}", 422, "invalid-sku"},
		"no units":            {`{"kind":"supply"}`, 422, "invalid-sku"},
		"no kind":             {`{"units":5}`, 422, "invalid-sku"},
		"kind empty":          {`{"kind":"","units":5}`, 422, "invalid-sku"},
		"kind unknown":        {`{"kind":"gift","units":5}`, 422, "invalid-sku"},
		"kind in capitals":    {`{"kind":"SUPPLY","units":5}`, 422, "invalid-sku"},
		"kind with NUL":       {`{"kind":"supply\u0000","units":5}`, 422, "invalid-sku"},
		"kind long":           {`{"kind":"` + strings.Repeat("s", 60_000) + `","units":5}`, 422, "invalid-sku"},
		"an order's, reserve": {`{"kind":"reserve","units":5}`, 422, "invalid-sku"},
		"an order's, sell":    {`{"kind":"sell","units":5}`, 422, "invalid-sku"},
		"an order's, release": {`{"kind":"release","units":5}`, 422, "invalid-sku"},
		"kind a number":       {`{"kind":1,"units":5}`, 400, "malformed"},
		"kind null":           {`{"kind":null,"units":5}`, 400, "malformed"},
		"units 0":             {delivered("0"), 422, "invalid-sku"},
		"units -0":            {delivered("-0"), 422, "invalid-sku"},
		"units negative":      {delivered("-1"), 422, "invalid-sku"},
		"units beyond limit":  {delivered("1000000001"), 422, "invalid-sku"},
		"sum beyond limit":    {delivered("999999991"), 422, "invalid-sku"},
		"units at limit":      {delivered("1000000000"), 422, "invalid-sku"}, // on top of those that are there
		"units beyond int64":  {delivered("99999999999999999999"), 422, "invalid-sku"},
		"units below int64":   {delivered("-99999999999999999999"), 422, "invalid-sku"},
		"units 2^64 + 5":      {delivered("18446744073709551621"), 422, "invalid-sku"},
		"units 60,000 digits": {delivered(strings.Repeat("9", 60_000)), 422, "invalid-sku"},
		"units float":         {delivered("1.5"), 400, "malformed"},
		"units 5.0":           {delivered("5.0"), 400, "malformed"},
		"units 1e3":           {delivered("1e3"), 400, "malformed"},
		"units 1e400":         {delivered("1e400"), 400, "malformed"},
		"units -1e400":        {delivered("-1e400"), 400, "malformed"},
		"units 1e-400":        {delivered("1e-400"), 400, "malformed"},
		"units NaN":           {delivered("NaN"), 400, "malformed"},
		"units Infinity":      {delivered("Infinity"), 400, "malformed"},
		"units hexadecimal":   {delivered("0x10"), 400, "malformed"},
		"units leading zero":  {delivered("05"), 400, "malformed"},
		"units with plus":     {delivered("+5"), 400, "malformed"},
		"units text":          {delivered(`"5"`), 400, "malformed"},
		"units null":          {delivered("null"), 400, "malformed"},
		"units true":          {delivered("true"), 400, "malformed"},
		"units array":         {delivered("[5]"), 400, "malformed"},
		"units object":        {delivered(`{"value":5}`), 400, "malformed"},
	} {
		table["delivery: "+name] = badRequest{
			method: http.MethodPost, target: movesOfMug, headers: []string{asJSON, withKey},
			body: c.body, status: c.status, slug: c.slug,
		}
	}
	return table
}

// badDeliveryHeaders come with a good body, or to what is not there.
func badDeliveryHeaders() map[string]badRequest {
	const key, used = withKey, "Idempotency-Key: used-key"
	good := []string{asJSON, key}
	table := map[string]badRequest{}
	for name, c := range map[string]struct {
		target, body string
		headers      []string
		status       int
		slug         string
	}{
		"no key":              {movesOfMug, moreMugs, []string{asJSON}, 400, "key-missing"},
		"empty key":           {movesOfMug, moreMugs, []string{asJSON, "Idempotency-Key: "}, 400, "key-missing"},
		"long key":            {movesOfMug, moreMugs, []string{asJSON, "Idempotency-Key: " + strings.Repeat("k", 256)}, 400, "key-invalid"},
		"oversize key":        {movesOfMug, moreMugs, []string{asJSON, "Idempotency-Key: " + strings.Repeat("k", 100_000)}, 400, "key-invalid"},
		"key not ASCII":       {movesOfMug, moreMugs, []string{asJSON, "Idempotency-Key: ключ"}, 400, "key-invalid"},
		"key not UTF-8":       {movesOfMug, moreMugs, []string{asJSON, "Idempotency-Key: a\xff"}, 400, "key-invalid"},
		"key with NUL":        {movesOfMug, moreMugs, []string{asJSON, "Idempotency-Key: a\x00b"}, 400, "key-invalid"},
		"key with tab":        {movesOfMug, moreMugs, []string{asJSON, "Idempotency-Key: a\tb"}, 400, "key-invalid"},
		"two keys":            {movesOfMug, moreMugs, []string{asJSON, key, "Idempotency-Key: key-2"}, 400, "malformed"},
		"same key twice":      {movesOfMug, moreMugs, []string{asJSON, key, key}, 400, "malformed"},
		"used, more units":    {movesOfMug, delivered("6"), []string{asJSON, used}, 422, "key-reused"},
		"used, fewer units":   {movesOfMug, delivered("4"), []string{asJSON, used}, 422, "key-reused"},
		"used, no units":      {movesOfMug, delivered("0"), []string{asJSON, used}, 422, "invalid-sku"},
		"used, another kind":  {movesOfMug, `{"kind":"sell","units":5}`, []string{asJSON, used}, 422, "invalid-sku"},
		"no media type":       {movesOfMug, moreMugs, []string{key}, 415, "media-type"},
		"form":                {movesOfMug, moreMugs, []string{key, "Content-Type: application/x-www-form-urlencoded"}, 415, "media-type"},
		"text":                {movesOfMug, moreMugs, []string{key, "Content-Type: text/plain"}, 415, "media-type"},
		"UTF-16":              {movesOfMug, moreMugs, []string{key, "Content-Type: application/json; charset=utf-16"}, 415, "media-type"},
		"two media types":     {movesOfMug, moreMugs, []string{key, asJSON, "Content-Type: text/plain"}, 400, "malformed"},
		"compressed":          {movesOfMug, moreMugs, []string{key, asJSON, "Content-Encoding: gzip"}, 415, "media-type"},
		"unknown SKU":         {"/v1/skus/cup/movements", moreMugs, good, 404, "sku-not-found"},
		"unknown SKU, used":   {"/v1/skus/cup/movements", moreMugs, []string{asJSON, used}, 404, "sku-not-found"},
		"SKU in capitals":     {"/v1/skus/MUG/movements", moreMugs, good, 404, "sku-not-found"},
		"SKU with NUL":        {"/v1/skus/mug%00/movements", moreMugs, good, 404, "sku-not-found"},
		"SKU not UTF-8":       {"/v1/skus/%ff/movements", moreMugs, good, 404, "sku-not-found"},
		"SKU with line break": {"/v1/skus/mug%0a/movements", moreMugs, good, 404, "sku-not-found"},
		"SKU a wildcard":      {"/v1/skus/%25/movements", moreMugs, good, 404, "sku-not-found"},
		"SKU long":            {"/v1/skus/" + strings.Repeat("m", 65) + "/movements", moreMugs, good, 404, "sku-not-found"},
	} {
		table["delivery: "+name+", header or path"] = badRequest{
			method: http.MethodPost, target: c.target, headers: c.headers, body: c.body, status: c.status, slug: c.slug,
		}
	}
	return table
}
