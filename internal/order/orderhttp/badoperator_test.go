package orderhttp_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/order/orderhttp"
)

// newRefusingOperator is the operator's API of a shop in which a delivery of mugs
// came with the key used-key.
func newRefusingOperator(t *testing.T) *refusing {
	t.Helper()
	s := newRefusing(t, func(c *orderhttp.Config) { c.Buyers = tokens(t, shopSecret) })
	wantStatus(t, s.restock(t, "used-key", moreMugs), http.StatusCreated)
	s.asked, s.rows = s.operator, s.allRows(t)
	return s
}

// What TestBadRequests promises, of the operator's API.
func TestBadRequests_operator(t *testing.T) {
	table := map[string]badRequest{}
	for _, part := range []map[string]badRequest{badDeliveryBodies(), badDeliveryHeaders(), badSKUs(), badSKUChanges(), badOperatorURLs()} {
		for name, bad := range part {
			bad.headers = append(slices.Clone(bad.headers), asOperator)
			table[name] = bad
		}
	}
	maps.Copy(table, badOperatorTokens(t))
	shop := newRefusingOperator(t)
	for name, bad := range table {
		t.Run(name, func(t *testing.T) { shop.refuse(t, bad) })
	}
}

// badOperatorTokens come with what would be good, or with what is not there.
// "Whoever shows it is the operator", and nobody else is, whatever the path.
func badOperatorTokens(t *testing.T) map[string]badRequest {
	t.Helper()
	table := map[string]badRequest{}
	for name, c := range map[string]struct {
		headers []string
		slug    string
	}{
		"nothing":        {nil, "no-token"},
		"empty":          {[]string{"Authorization: "}, "no-token"},
		"a name":         {[]string{"Shop-Buyer: operator"}, "no-token"},
		"scheme alone":   {[]string{"Authorization: Bearer "}, "no-token"},
		"password":       {[]string{"Authorization: Basic b3BlcmF0b3I6"}, "no-token"},
		"token alone":    {[]string{"Authorization: " + operatorToken}, "no-token"},
		"in the cookie":  {[]string{"Cookie: token=" + operatorToken}, "no-token"},
		"twice":          {[]string{asOperator, asOperator}, "no-token"},
		"good and bad":   {[]string{asOperator, asOperator + "x"}, "no-token"},
		"two in one":     {[]string{asOperator + ", " + asOperator}, "bad-token"},
		"two blanks":     {[]string{"Authorization: Bearer  " + operatorToken}, "bad-token"},
		"blank behind":   {[]string{asOperator + " "}, "bad-token"},
		"NUL behind":     {[]string{asOperator + "\x00"}, "bad-token"},
		"not UTF-8":      {[]string{asOperator + "\xff"}, "bad-token"},
		"another":        {[]string{"Authorization: Bearer " + strings.ToUpper(operatorToken)}, "bad-token"},
		"cut":            {[]string{asOperator[:len(asOperator)-1]}, "bad-token"},
		"longer":         {[]string{asOperator + "x"}, "bad-token"},
		"oversize":       {[]string{"Authorization: Bearer " + strings.Repeat("b", 10_000)}, "bad-token"},
		"a buyer's":      {[]string{shows(t, shopSecret, "ann")}, "bad-token"},
		"buyer operator": {[]string{shows(t, shopSecret, "operator")}, "bad-token"},
		"buyers' secret": {[]string{"Authorization: Bearer " + shopSecret}, "bad-token"},
	} {
		for _, call := range []string{
			"POST /v1/skus", "PATCH /v1/skus/mug", "POST " + movesOfMug, "GET " + movesOfMug, "GET /v1/audit", "GET /metrics",
			"GET /debug/pprof/", "GET /debug/pprof/heap", "HEAD /v1/audit", "GET /nowhere", "PUT /v1/audit", "POST /healthz",
		} {
			method, target, _ := strings.Cut(call, " ")
			bad := badRequest{
				method: method, target: target, headers: append([]string{asJSON, withKey}, c.headers...),
				body: moreMugs, status: http.StatusUnauthorized, slug: c.slug,
			}
			if target == "/v1/skus" {
				bad.body = newSKU
			}
			table["token: "+name+", "+call] = bad
		}
	}
	return table
}

// badOperatorURLs come without a body.
func badOperatorURLs() map[string]badRequest {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return inTable(map[string]badURL{
		"ledger of none":       {get, "/v1/skus/cup/movements", 404, "sku-not-found"},
		"ledger, capitals":     {get, "/v1/skus/MUG/movements", 404, "sku-not-found"},
		"ledger, NUL":          {get, "/v1/skus/mug%00/movements", 404, "sku-not-found"},
		"ledger, not UTF-8":    {get, "/v1/skus/%ff/movements", 404, "sku-not-found"},
		"ledger, wildcard":     {get, "/v1/skus/%25/movements", 404, "sku-not-found"},
		"ledger, SQL":          {get, "/v1/skus/" + url.PathEscape("' OR ''='") + "/movements", 404, "sku-not-found"},
		"ledger, long":         {get, "/v1/skus/" + strings.Repeat("m", 5_000) + "/movements", 404, "sku-not-found"},
		"ledger, no name":      {get, "/v1/skus//movements", 404, "sku-not-found"},
		"ledger, slash":        {get, movesOfMug + "/", 404, "not-found"},
		"one movement":         {get, movesOfMug + "/1", 404, "not-found"},
		"limit zero":           {get, movesOfMug + "?limit=0", 400, "malformed"},
		"limit negative":       {get, movesOfMug + "?limit=-1", 400, "malformed"},
		"limit 101":            {get, movesOfMug + "?limit=101", 400, "malformed"},
		"limit float":          {get, movesOfMug + "?limit=1.5", 400, "malformed"},
		"limit NaN":            {get, movesOfMug + "?limit=NaN", 400, "malformed"},
		"limit huge":           {get, movesOfMug + "?limit=99999999999999999999", 400, "malformed"},
		"limit twice":          {get, movesOfMug + "?limit=1&limit=1", 400, "malformed"},
		"cursor made up":       {get, movesOfMug + "?cursor=mug", 400, "malformed"},
		"cursor not base64":    {get, movesOfMug + "?cursor=***", 400, "malformed"},
		"cursor of SKUs":       {get, movesOfMug + "?cursor=c2t1MTptdWc", 400, "malformed"},
		"cursor an id":         {get, movesOfMug + "?cursor=ANN", 400, "malformed"},
		"cursor twice":         {get, movesOfMug + "?cursor=&cursor=", 400, "malformed"},
		"cursor NUL":           {get, movesOfMug + "?cursor=%00", 400, "malformed"},
		"cursor huge":          {get, movesOfMug + "?cursor=" + strings.Repeat("A", 100_000), 400, "malformed"},
		"query broken":         {get, movesOfMug + "?limit=%zz", 400, "malformed"},
		"PUT ledger":           {put, movesOfMug, 405, "method-not-allowed"},
		"DELETE ledger":        {del, movesOfMug, 405, "method-not-allowed"},
		"audit of none":        {get, "/v1/audit?sku=cap", 404, "sku-not-found"},
		"audit, SQL":           {get, "/v1/audit?sku=" + url.QueryEscape("' OR ''='"), 404, "sku-not-found"},
		"audit, blank":         {get, "/v1/audit?sku=%20", 404, "sku-not-found"},
		"audit, NUL":           {get, "/v1/audit?sku=mug%00", 404, "sku-not-found"},
		"audit, not UTF-8":     {get, "/v1/audit?sku=%ff", 404, "sku-not-found"},
		"audit, long":          {get, "/v1/audit?sku=" + strings.Repeat("m", 5_000), 404, "sku-not-found"},
		"audit twice":          {get, "/v1/audit?sku=mug&sku=cup", 400, "malformed"},
		"audit, broken":        {get, "/v1/audit?sku=%zz", 400, "malformed"},
		"audit, parameter":     {get, "/v1/audit?SKU=mug", 400, "malformed"},
		"audit, buyer":         {get, "/v1/audit?sku=mug&buyer=ann", 400, "malformed"},
		"ledger, parameter":    {get, movesOfMug + "?kind=sell", 400, "malformed"},
		"create, parameter":    {post, "/v1/skus?units=5", 400, "malformed"},
		"restock, parameter":   {post, movesOfMug + "?dry_run=1", 400, "malformed"},
		"change, parameter":    {http.MethodPatch, "/v1/skus/mug?limit_per_buyer=1", 400, "malformed"},
		"POST audit":           {post, "/v1/audit", 405, "method-not-allowed"},
		"DELETE sku":           {del, "/v1/skus/mug", 405, "method-not-allowed"},
		"no such path":         {get, "/", 404, "not-found"},
		"no metrics":           {get, "/metrics", 404, "not-found"},
		"command line":         {get, "/debug/pprof/cmdline", 404, "not-found"},
		"no such profile":      {get, "/debug/pprof/gold", 404, "not-found"},
		"profile, NUL":         {get, "/debug/pprof/heap%00", 404, "not-found"},
		"profile, slash":       {get, "/debug/pprof/heap/", 404, "not-found"},
		"profile, two slashes": {get, "/debug/pprof//heap", 404, "not-found"},
		"profiles, no slash":   {get, "/debug/pprof", 404, "not-found"},
		"variables":            {get, "/debug/vars", 404, "not-found"},
		"POST profile":         {post, "/debug/pprof/symbol", 405, "method-not-allowed"},
		"buyers' orders":       {get, "/v1/orders", 404, "not-found"},
		"buyers' order":        {get, "/v1/orders/ANN", 404, "not-found"},
		"pay":                  {post, "/v1/orders/ANN/pay", 404, "not-found"},
		"place an order":       {post, "/v1/orders", 404, "not-found"},
		"buyers' SKUs":         {get, "/v1/skus", 405, "method-not-allowed"},
		"buyers' SKU":          {get, "/v1/skus/mug", 405, "method-not-allowed"},
		"buyers' readiness":    {get, "/readyz", 404, "not-found"},
		"buyers' document":     {get, "/openapi.yaml", 404, "not-found"},
		"strategies":           {get, "/v1/strategies", 404, "not-found"},
	})
}
