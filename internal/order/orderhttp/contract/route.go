package contract

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
)

// find returns the operation that answers r, with the values of the path's
// parameters. HEAD is answered as GET is.
func (c *Contract) find(r *http.Request) (*routers.Route, map[string]string) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, path := range c.doc.Paths.InMatchingOrder() {
		parameters, ok := match(path, r.URL.Path)
		if !ok {
			continue
		}
		item := c.doc.Paths.Value(path)
		operation := item.Operations()[method]
		if operation == nil {
			operation = c.fallback(http.StatusMethodNotAllowed, "MethodNotAllowed")
		}
		return &routers.Route{Spec: c.doc, Path: path, PathItem: item, Method: method, Operation: operation}, parameters
	}
	nowhere := c.fallback(http.StatusNotFound, "NoSuchPath")
	return &routers.Route{Spec: c.doc, PathItem: &openapi3.PathItem{}, Method: method, Operation: nowhere}, nil
}

// fallback is what answers where the document has no operation. An instance that
// has too much to do says so before it looks at the path.
func (c *Contract) fallback(status int, response string) *openapi3.Operation {
	known := c.doc.Components.Responses
	responses := openapi3.NewResponses(
		openapi3.WithStatus(status, known[response]),
		openapi3.WithStatus(http.StatusServiceUnavailable, known["Unavailable"]),
	)
	if c.refusal != "" {
		responses.Set(strconv.Itoa(http.StatusUnauthorized), known[c.refusal])
	}
	return &openapi3.Operation{Responses: responses}
}

// match compares a path of the document with one that was decoded, as the shop's
// router does: a parameter may be empty except at the end.
func match(template, path string) (map[string]string, bool) {
	wanted, parts := strings.Split(template, "/"), strings.Split(path, "/")
	if len(wanted) != len(parts) {
		return nil, false
	}
	parameters := map[string]string{}
	for i, want := range wanted {
		name, isParameter := strings.CutPrefix(want, "{")
		switch {
		case isParameter && (parts[i] != "" || i < len(parts)-1):
			parameters[strings.TrimSuffix(name, "}")] = parts[i]
		case want != parts[i]:
			return nil, false
		}
	}
	return parameters, true
}
