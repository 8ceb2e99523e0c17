package orderhttp_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestRoutes_badURLs(t *testing.T) {
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	for name, c := range map[string]struct {
		method, target string
		status         int
		slug           string
	}{
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
		"audit unknown sku":      {get, "/v1/audit?sku=cup", 404, "sku-not-found"},
		"audit sku, SQL":         {get, "/v1/audit?sku=" + url.QueryEscape("' OR ''='"), 404, "sku-not-found"},
		"audit sku twice":        {get, "/v1/audit?sku=mug&sku=cup", 400, "malformed"},
		"strategies without lab": {get, "/v1/strategies", 404, "lab-off"},
		"create without lab":     {post, "/v1/skus", 404, "lab-off"},
	} {
		t.Run(name, func(t *testing.T) {
			w := b.call(t, c.method, c.target, "")
			wantProblem(t, w, c.status, c.slug)
			if allow := w.Header().Get("Allow"); (allow != "") != (c.status == http.StatusMethodNotAllowed) {
				t.Errorf("got Allow %q with status %d, want one with 405 alone", allow, c.status)
			}
		})
	}
	b.wantUntouched(t, "mug", 5)
}
