package orderhttp_test

import (
	"net/http"
	"strings"
	"unicode/utf16"
)

const goodOrder = `{"lines":[{"sku":"mug","quantity":1}]}`

// line returns an order whose quantity is the given text.
func line(quantity string) string {
	return `{"lines":[{"sku":"mug","quantity":` + quantity + `}]}`
}

// lines returns an order of the given lines.
func lines(text string) string { return `{"lines":[` + text + `]}` }

// badBodies are orders with good headers.
func badBodies() map[string]badRequest {
	table := map[string]badRequest{}
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
		"21 lines":               {lines(strings.Repeat(`{"sku":"mug","quantity":1},`, 20) + `{"sku":"cup","quantity":1}`), 422, "invalid-order"},
		"21 lines of one SKU":    {lines(strings.Repeat(`{"sku":"mug","quantity":1},`, 20) + `{"sku":"mug","quantity":1}`), 422, "invalid-order"},
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
		"sum of 1001":            {lines(`{"sku":"mug","quantity":1000},{"sku":"mug","quantity":1}`), 422, "invalid-order"},
		"sum wraps":              {lines(`{"sku":"mug","quantity":9223372036854775807},{"sku":"mug","quantity":9223372036854775807}`), 422, "invalid-order"},
		"sum of 2 and -1":        {lines(`{"sku":"mug","quantity":2},{"sku":"mug","quantity":-1}`), 422, "invalid-order"},
		"second line empty":      {lines(`{"sku":"mug","quantity":1},{}`), 422, "invalid-order"},
		"two currencies":         {lines(`{"sku":"mug","quantity":1},{"sku":"pen","quantity":1}`), 422, "invalid-order"},
		"second sku unknown":     {lines(`{"sku":"mug","quantity":1},{"sku":"cup","quantity":1}`), 422, "unknown-sku"},
		"second sku too long":    {lines(`{"sku":"mug","quantity":1},{"sku":"` + strings.Repeat("m", 10_000) + `","quantity":1}`), 422, "unknown-sku"},
		"no sku":                 {`{"lines":[{"quantity":1}]}`, 422, "invalid-order"},
		"unknown sku":            {`{"lines":[{"sku":"cup","quantity":1}]}`, 422, "unknown-sku"},
		"sku in capitals":        {`{"lines":[{"sku":"MUG","quantity":1}]}`, 422, "unknown-sku"},
		"sku with space":         {`{"lines":[{"sku":"mug ","quantity":1}]}`, 422, "unknown-sku"},
		"sku with quote":         {`{"lines":[{"sku":"mug' OR '1'='1","quantity":1}]}`, 422, "unknown-sku"},
		"sku with escaped NUL":   {`{"lines":[{"sku":"mug\u0000","quantity":1}]}`, 422, "unknown-sku"},
		"sku with half a letter": {`{"lines":[{"sku":"\ud800","quantity":1}]}`, 422, "unknown-sku"},
		"sku too long":           {`{"lines":[{"sku":"` + strings.Repeat("m", 10_000) + `","quantity":1}]}`, 422, "unknown-sku"},
		"more than there are":    {line("6"), 409, "sold-out"},
		"sum of more than are":   {lines(`{"sku":"mug","quantity":3},{"sku":"mug","quantity":3}`), 409, "sold-out"},
		"second line sold out":   {lines(`{"sku":"mug","quantity":1},{"sku":"hat","quantity":1}`), 409, "sold-out"},
		"not UTF-8, short":       {"{\"lines\":[{\"sku\":\"m\xc3", 400, "malformed"},
		"overlong UTF-8":         {"{\"lines\":[{\"sku\":\"m\xc0\xb5g\",\"quantity\":1}]}", 400, "malformed"},
		"surrogate in UTF-8":     {"{\"lines\":[{\"sku\":\"\xed\xa0\x80\",\"quantity\":1}]}", 400, "malformed"},
		"UTF-16":                 {inUTF16(goodOrder, false), 400, "malformed"},
		"UTF-16, big end first":  {inUTF16(goodOrder, true), 400, "malformed"},
		"gzip":                   {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00", 400, "malformed"},
		"control char in a name": {"{\"li\x01nes\":[]}", 400, "malformed"},
		"control char between":   {"{\"lines\":\x0b[]}", 400, "malformed"},
		"NaN alone":              {"NaN", 400, "malformed"},
		"quantity nan":           {line("nan"), 400, "malformed"},
		"quantity +Infinity":     {line("Infinity"), 400, "malformed"},
		"quantity inf":           {line("1/0"), 400, "malformed"},
		"quantity -1e400":        {line("-1e400"), 400, "malformed"},
		"quantity 1e-400":        {line("1e-400"), 400, "malformed"},
		"quantity 1E3":           {line("1E3"), 400, "malformed"},
		"quantity underscore":    {line("1_000"), 400, "malformed"},
		"quantity comma":         {line("1,0"), 400, "malformed"},
		"quantity other digits":  {line("١"), 400, "malformed"},
		"quantity object":        {line(`{"value":1}`), 400, "malformed"},
		"quantity 60,000 digits": {line(strings.Repeat("9", 60_000)), 422, "invalid-order"},
		"quantity, long zeros":   {line("1." + strings.Repeat("0", 60_000)), 400, "malformed"},
		"1e400 in unknown field": {`{"lines":[],"x":1e400}`, 400, "malformed"},
		"one level too deep":     {`{"lines":` + strings.Repeat("[", 8) + strings.Repeat("]", 8) + `}`, 400, "malformed"},
		"deep, left open":        {strings.Repeat("[", 60_000), 400, "malformed"},
		"prototype":              {`{"__proto__":{"lines":[]},"lines":[{"sku":"mug","quantity":1}]}`, 400, "malformed"},
		"unknown, then good":     {`{"strategy":"none","lines":[{"sku":"mug","quantity":1}]}`, 400, "malformed"},
		"buyer in the body":      {`{"buyer":"bob","lines":[{"sku":"mug","quantity":1}]}`, 400, "malformed"},
		"sku with slash":         {`{"lines":[{"sku":"../mug","quantity":1}]}`, 422, "unknown-sku"},
		"sku look-alike":         {`{"lines":[{"sku":"mυg","quantity":1}]}`, 422, "unknown-sku"},
		"sku turned around":      {`{"lines":[{"sku":"\u202egum","quantity":1}]}`, 422, "unknown-sku"},
		"sku of 65 letters":      {`{"lines":[{"sku":"` + strings.Repeat("m", 65) + `","quantity":1}]}`, 422, "unknown-sku"},
		"sku wildcard":           {`{"lines":[{"sku":"%","quantity":1}]}`, 422, "unknown-sku"},
	} {
		table["body: "+name] = badRequest{
			method: http.MethodPost, target: "/v1/orders", headers: []string{asJSON, withKey},
			body: c.body, status: c.status, slug: c.slug,
		}
	}
	return table
}

// inUTF16 encodes text with a byte order mark.
func inUTF16(text string, bigEndFirst bool) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		first, second := byte(unit), byte(unit>>8)
		if bigEndFirst {
			first, second = second, first
		}
		out.WriteByte(first)
		out.WriteByte(second)
	}
	return out.String()
}
