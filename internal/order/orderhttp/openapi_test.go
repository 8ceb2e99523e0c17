package orderhttp_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/order/orderhttp/contract"
	"example.com/shop/internal/stock"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	c, err := contract.Buyers()
	if err != nil {
		t.Fatal(err)
	}
	return c.Doc()
}

// Each route of a listener is in the document, and each operation that is there a
// route.
func TestOpenAPI_routes(t *testing.T) {
	t.Parallel()
	b := setup(t, lab)
	for name, c := range map[string]struct {
		listener contract.Listener
		handler  http.Handler
	}{"buyers": {contract.Buyers, b.handler}, "operator": {contract.Operator, b.operatorWithMetrics(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promised, err := c.listener()
			if err != nil {
				t.Fatal(err)
			}
			wantRoutes(t, promised.Doc(), c.handler.(*gin.Engine).Routes())
		})
	}
}

func wantRoutes(t *testing.T, document *openapi3.T, answered gin.RoutesInfo) {
	t.Helper()
	parameter := regexp.MustCompile(`:([a-z]+)`)
	var routes, heads, gets []string
	for _, r := range answered {
		path := parameter.ReplaceAllString(r.Path, "{$1}")
		if r.Method == http.MethodHead {
			heads = append(heads, path)
			continue
		}
		if r.Method == http.MethodGet {
			gets = append(gets, path)
		}
		routes = append(routes, r.Method+" "+path)
	}
	var operations []string
	for path, item := range document.Paths.Map() {
		for method := range item.Operations() {
			operations = append(operations, method+" "+path)
		}
	}
	for what, c := range map[string][2][]string{
		"document and routes":              {operations, routes},
		"HEAD is answered wherever GET is": {gets, heads},
	} {
		slices.Sort(c[0])
		slices.Sort(c[1])
		if diff := cmp.Diff(c[0], c[1]); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

// Each problem of the table is in the document, and the other way round.
func TestOpenAPI_problems(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, kind := range document(t).Components.Schemas["ProblemType"].Value.Enum {
		listed = append(listed, fmt.Sprint(kind))
	}
	answered := orderhttp.ProblemTypes()
	slices.Sort(answered)
	if diff := cmp.Diff(listed, slices.Compact(answered)); diff != "" {
		t.Errorf("document and error table:\n%s", diff)
	}
}

// "Every object there is closed": an unknown field would not be noticed in another.
func TestOpenAPI_closed(t *testing.T) {
	t.Parallel()
	var check func(name string, schema *openapi3.Schema)
	check = func(name string, schema *openapi3.Schema) {
		if open := schema.AdditionalProperties.Has; schema.Type.Is("object") && (open == nil || *open) {
			t.Errorf("%s allows additional properties", name)
		}
		for field, s := range schema.Properties {
			check(name+"."+field, s.Value)
		}
		if schema.Items != nil {
			check(name+"[]", schema.Items.Value)
		}
	}
	for name, s := range document(t).Components.Schemas {
		check(name, s.Value)
	}
}

// The document's limits are the shop's.
func TestOpenAPI_limits(t *testing.T) {
	t.Parallel()
	schemas, parameters := document(t).Components.Schemas, document(t).Components.Parameters
	lines := schemas["NewOrder"].Value.Properties["lines"].Value
	quantity := lines.Items.Value.Properties["quantity"].Value
	limit := parameters["Limit"].Value.Schema.Value
	sku := schemas["NewSKU"].Value.Properties
	for name, c := range map[string]struct{ got, want any }{
		"lines":         {*lines.MaxItems, uint64(order.MaxLines)},
		"quantity":      {*quantity.Max, float64(order.MaxUnits)},
		"key":           {*schemas["Key"].Value.MaxLength, uint64(order.MaxKey)},
		"page":          {*limit.Max, float64(orderhttp.MaxPage)},
		"default page":  {limit.Default, float64(orderhttp.DefaultPage)},
		"delivery":      {*schemas["NewMovement"].Value.Properties["units"].Value.Max, float64(stock.MaxUnits)},
		"units":         {*sku["units"].Value.Max, float64(stock.MaxUnits)},
		"per buyer":     {*sku["limit_per_buyer"].Value.Max, float64(stock.MaxUnits)},
		"order's state": {len(schemas["Status"].Value.Enum), 4},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}

// "It may be stored, and is asked for again with its ETag."
func TestOpenAPI_served(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	first := b.call(t, http.MethodGet, "/openapi.yaml", "")
	if got := first.Header().Get("Content-Type"); first.Code != http.StatusOK || got != "application/yaml" {
		t.Errorf("got %d, %s, want 200, application/yaml", first.Code, got)
	}
	if !strings.HasPrefix(first.Body.String(), "openapi: 3.1") {
		t.Errorf("got %.40s, want OpenAPI 3.1", first.Body)
	}
	tag := first.Header().Get("ETag")
	for header, status := range map[string]int{
		tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, "": 200, strings.Trim(tag, `"`): 200,
	} {
		w := b.call(t, http.MethodGet, "/openapi.yaml", "", "If-None-Match: "+header)
		if w.Code != status || w.Header().Get("ETag") != tag {
			t.Errorf("If-None-Match %q: got %d, ETag %s, want %d, %s", header, w.Code, w.Header().Get("ETag"), status, tag)
		}
	}
}
