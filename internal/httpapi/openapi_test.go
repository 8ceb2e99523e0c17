package httpapi_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/httpapi/contract"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Each route of a listener is in the document, and each operation that is there a route.
func TestOpenAPI_routes(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	parameter := regexp.MustCompile(`:([a-z]+)`)
	for name, c := range map[string]struct {
		document *openapi3.T
		handler  http.Handler
	}{"buyers": {contract.Buyers().Doc, s.handler}, "operator": {contract.Operator().Doc, s.operator}} {
		var routes, operations []string
		for _, r := range c.handler.(*gin.Engine).Routes() {
			routes = append(routes, r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}"))
		}
		for path, item := range c.document.Paths.Map() {
			for method := range item.Operations() {
				operations = append(operations, method+" "+path)
				if method == http.MethodGet {
					operations = append(operations, "HEAD "+path) // "HEAD is answered wherever GET is"
				}
			}
		}
		slices.Sort(routes)
		slices.Sort(operations)
		if diff := cmp.Diff(operations, routes); diff != "" {
			t.Errorf("%s: document and routes:\n%s", name, diff)
		}
	}
}

// The table and the document have the same problems. Each object is closed: in an open object, an unknown field would
// not be noticed. The limits are the shop's.
func TestOpenAPI_components(t *testing.T) {
	t.Parallel()
	components := contract.Buyers().Doc.Components
	schemas := components.Schemas
	var listed []string
	for _, kind := range schemas["ProblemType"].Value.Enum {
		listed = append(listed, fmt.Sprint(kind))
	}
	answered := httpapi.ProblemTypes()
	slices.Sort(answered)
	if diff := cmp.Diff(listed, slices.Compact(answered)); diff != "" {
		t.Errorf("document and error table:\n%s", diff)
	}
	for name, s := range schemas {
		if open := s.Value.AdditionalProperties.Has; s.Value.Type.Is("object") && (open == nil || *open) {
			t.Errorf("%s allows additional properties", name)
		}
	}
	limit := components.Parameters["Limit"].Value.Schema.Value
	lines, sku := schemas["NewOrder"].Value.Properties["lines"].Value, schemas["NewSKU"].Value.Properties
	for name, c := range map[string]struct{ got, want any }{
		"lines":        {*lines.MaxItems, uint64(order.MaxLines)},
		"quantity":     {*lines.Items.Value.Properties["quantity"].Value.Max, float64(order.MaxUnits)},
		"key":          {*schemas["Key"].Value.MaxLength, uint64(order.MaxKey)},
		"page":         {*limit.Max, float64(httpapi.MaxPage)},
		"default page": {limit.Default, float64(httpapi.DefaultPage)},
		"delivery":     {*schemas["NewMovement"].Value.Properties["units"].Value.Max, float64(stock.MaxUnits)},
		"units":        {*sku["units"].Value.Max, float64(stock.MaxUnits)},
		"per buyer":    {*sku["limit_per_buyer"].Value.Max, float64(stock.MaxUnits)},
		"statuses":     {len(schemas["Status"].Value.Enum), 4},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}
