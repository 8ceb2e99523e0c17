package orderhttp_test

import (
	"net/http"
	"net/url"
	"strings"
)

// badURL is a request without a body.
type badURL struct {
	method, target string
	status         int
	slug           string
}

// inTable returns them as the table of bad requests has them.
func inTable(urls map[string]badURL) map[string]badRequest {
	table := map[string]badRequest{}
	for name, c := range urls {
		table["URL: "+name] = badRequest{method: c.method, target: c.target, status: c.status, slug: c.slug}
	}
	return table
}

// badURLs come without a body. ANN stands for the id of an order of ann's; who
// asks is guest.
func badURLs() map[string]badRequest {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return inTable(map[string]badURL{
		"root":                   {get, "/", 404, "not-found"},
		"no such path":           {get, "/v2/orders", 404, "not-found"},
		"trailing slash":         {get, "/v1/skus/", 404, "not-found"},
		"no such path, POST":     {post, "/v1/order", 404, "not-found"},
		"PUT orders":             {put, "/v1/orders", 405, "method-not-allowed"},
		"DELETE order":           {del, "/v1/orders/0190d0c0-0000-7000-8000-000000000000", 405, "method-not-allowed"},
		"POST readyz":            {post, "/readyz", 405, "method-not-allowed"},
		"made-up method":         {"SELL", "/v1/skus", 405, "method-not-allowed"},
		"order, not an id":       {get, "/v1/orders/1", 404, "order-not-found"},
		"order, unknown id":      {get, "/v1/orders/0190d0c0-0000-7000-8000-000000000000", 404, "order-not-found"},
		"order, braces":          {get, "/v1/orders/{0190d0c0-0000-7000-8000-000000000000}", 404, "order-not-found"},
		"order, SQL":             {get, "/v1/orders/" + url.PathEscape("' OR 1=1 --"), 404, "order-not-found"},
		"order, NUL":             {get, "/v1/orders/%00", 404, "order-not-found"},
		"order, not UTF-8":       {get, "/v1/orders/%ff", 404, "order-not-found"},
		"sku unknown":            {get, "/v1/skus/cup", 404, "sku-not-found"},
		"sku in capitals":        {get, "/v1/skus/MUG", 404, "sku-not-found"},
		"sku, wildcard":          {get, "/v1/skus/%25", 404, "sku-not-found"},
		"sku, NUL":               {get, "/v1/skus/mug%00", 404, "sku-not-found"},
		"sku, long":              {get, "/v1/skus/" + strings.Repeat("m", 5_000), 404, "sku-not-found"},
		"limit zero":             {get, "/v1/skus?limit=0", 400, "malformed"},
		"limit negative":         {get, "/v1/skus?limit=-1", 400, "malformed"},
		"limit 101":              {get, "/v1/skus?limit=101", 400, "malformed"},
		"limit float":            {get, "/v1/skus?limit=1.5", 400, "malformed"},
		"limit text":             {get, "/v1/skus?limit=all", 400, "malformed"},
		"limit huge":             {get, "/v1/skus?limit=99999999999999999999", 400, "malformed"},
		"limit twice":            {get, "/v1/skus?limit=1&limit=2", 400, "malformed"},
		"cursor made up":         {get, "/v1/skus?cursor=mug", 400, "malformed"},
		"cursor not base64":      {get, "/v1/skus?cursor=***", 400, "malformed"},
		"cursor of no name":      {get, "/v1/skus?cursor=JyBPUiAxPTE", 400, "malformed"},
		"cursor twice":           {get, "/v1/skus?cursor=bXVn&cursor=bXVn", 400, "malformed"},
		"query broken":           {get, "/v1/skus?limit=%zz", 400, "malformed"},
		"query with semicolon":   {get, "/v1/skus?limit=1;cursor=x", 400, "malformed"},
		"another parameter":      {get, "/v1/skus?sku=mug", 400, "malformed"},
		"parameter, capitals":    {get, "/v1/skus?Limit=1", 400, "malformed"},
		"parameter, empty":       {get, "/v1/skus?page=", 400, "malformed"},
		"parameter, no name":     {get, "/v1/skus?=1", 400, "malformed"},
		"parameter, long":        {get, "/v1/skus?" + strings.Repeat("p", 5_000), 400, "malformed"},
		"parameter, NUL":         {get, "/v1/skus?%00", 400, "malformed"},
		"parameter, not UTF-8":   {get, "/v1/skus?%ff=1", 400, "malformed"},
		"sku, a parameter":       {get, "/v1/skus/mug?limit=1", 400, "malformed"},
		"order, a parameter":     {get, "/v1/orders/ANN?status=paid", 400, "malformed"},
		"orders, a parameter":    {get, "/v1/orders?status=paid", 400, "malformed"},
		"buy, a parameter":       {post, "/v1/orders?dry_run=1", 400, "malformed"},
		"pay, a parameter":       {post, "/v1/orders/ANN/pay?force", 400, "malformed"},
		"cancel, broken query":   {post, "/v1/orders/ANN/cancel?%zz", 400, "malformed"},
		"strategies, parameter":  {get, "/v1/strategies?limit=1", 400, "malformed"},
		"strategies without lab": {get, "/v1/strategies", 404, "lab-off"},
		"two slashes":            {get, "//v1/skus", 404, "not-found"},
		"two slashes inside":     {get, "/v1//skus", 404, "not-found"},
		"two dots":               {get, "/v1/skus/../audit", 404, "not-found"},
		"two dots, escaped":      {get, "/v1/skus/%2e%2e", 404, "sku-not-found"},
		"one dot":                {get, "/./v1/skus", 404, "not-found"},
		"escaped slash":          {get, "/v1/skus/mug%2Fmug", 404, "not-found"},
		"escaped slash, at end":  {get, "/v1/skus%2F", 404, "not-found"},
		"escaped twice":          {get, "/v1/skus/%256dug", 404, "sku-not-found"},
		"backslash":              {get, "/v1%5Cskus", 404, "not-found"},
		"capitals":               {get, "/V1/SKUS", 404, "not-found"},
		"parameter in the path":  {get, "/v1/skus;limit=1", 404, "not-found"},
		"blank after the path":   {get, "/v1/skus%20", 404, "not-found"},
		"NUL after the path":     {get, "/v1/skus%00", 404, "not-found"},
		"line break in the path": {get, "/v1/skus/mug%0d%0aAllow:%20x", 404, "sku-not-found"},
		"the document's folder":  {get, "/openapi.yaml/..", 404, "not-found"},
		"order, long":            {get, "/v1/orders/" + strings.Repeat("0", 5_000), 404, "order-not-found"},
		"order, all zero":        {get, "/v1/orders/00000000-0000-0000-0000-000000000000", 404, "order-not-found"},
		"order, made-up action":  {post, "/v1/orders/ANN/refund", 404, "not-found"},
		"order, no id":           {post, "/v1/orders//pay", 404, "order-not-found"},
		"another's, get":         {get, "/v1/orders/ANN", 404, "order-not-found"},
		"another's, pay":         {post, "/v1/orders/ANN/pay", 404, "order-not-found"},
		"another's, cancel":      {post, "/v1/orders/ANN/cancel", 404, "order-not-found"},
		"another's, urn":         {get, "/v1/orders/urn:uuid:ANN", 404, "order-not-found"},
		"another's, NUL":         {post, "/v1/orders/ANN%00/pay", 404, "order-not-found"},
		"another's, blank":       {post, "/v1/orders/%20ANN/cancel", 404, "order-not-found"},
		"orders, limit zero":     {get, "/v1/orders?limit=0", 400, "malformed"},
		"orders, limit NaN":      {get, "/v1/orders?limit=NaN", 400, "malformed"},
		"orders, limit plus":     {get, "/v1/orders?limit=1e1", 400, "malformed"},
		"orders, limit twice":    {get, "/v1/orders?limit=1&limit=1", 400, "malformed"},
		"orders, cursor of SKUs": {get, "/v1/orders?cursor=c2t1MTptdWc", 400, "malformed"},
		"orders, cursor an id":   {get, "/v1/orders?cursor=ANN", 400, "malformed"},
		"orders, cursor padded":  {get, "/v1/orders?cursor=b3JkZXIxOg==", 400, "malformed"},
		"orders, cursor twice":   {get, "/v1/orders?cursor=&cursor=", 400, "malformed"},
		"orders, cursor huge":    {get, "/v1/orders?cursor=" + strings.Repeat("A", 100_000), 400, "malformed"},
		"orders, query NUL":      {get, "/v1/orders?cursor=%00", 400, "malformed"},
		"create without lab":     {post, "/v1/skus", 405, "method-not-allowed"},
		"DELETE skus":            {del, "/v1/skus", 405, "method-not-allowed"},
		"restock":                {post, "/v1/skus/mug/movements", 404, "not-found"},
		"ledger":                 {get, "/v1/skus/mug/movements", 404, "not-found"},
		"audit":                  {get, "/v1/audit", 404, "not-found"},
		"metrics":                {get, "/metrics", 404, "not-found"},
		"profiles":               {get, "/debug/pprof/", 404, "not-found"},
	})
}
