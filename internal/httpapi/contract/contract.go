// Package contract checks answers of the shop's HTTP API against openapi.yaml, in tests.
//
// An answer is off the contract if its operation does not list its status, if a header is missing, wrong or not listed,
// if its media type is another one, or if its body does not match the schema: every object there is closed. What is
// answered at a path or to a method that the document does not have must be the response NoSuchPath or
// MethodNotAllowed; at the operator's listener it may be OperatorUnauthorized.
package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"example.com/shop/internal/httpapi"
)

// Contract is what the document has of one listener. It may be used by many goroutines at once.
type Contract struct {
	Doc     *openapi3.T // with the operations of this listener alone, not to be changed
	refusal string      // the response to a caller without the right token; empty for none
}

// Listener reads what the document has of one listener.
type Listener func() (*Contract, error)

// Buyers and Operator read the document that this program serves, once. They fail if that is not valid OpenAPI 3.1.
var (
	Buyers   Listener = sync.OnceValues(func() (*Contract, error) { return load("/", "") })
	Operator Listener = sync.OnceValues(func() (*Contract, error) { return load("http://{operator}", "OperatorUnauthorized") })
)

// load keeps the operations that are at the server with this URL.
func load(server, refusal string) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.OpenAPI())
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			servers := doc.Servers // those that are named closest to the operation
			if len(item.Servers) > 0 {
				servers = item.Servers
			}
			if operation.Servers != nil {
				servers = *operation.Servers
			}
			if !slices.ContainsFunc(servers, func(s *openapi3.Server) bool { return s.URL == server }) {
				item.SetOperation(method, nil)
			}
		}
		if len(item.Operations()) == 0 {
			doc.Paths.Delete(path)
		}
	}
	return &Contract{Doc: doc, refusal: refusal}, nil
}

// Check returns what is off the contract in an answer to r.
func (c *Contract) Check(r *http.Request, status int, header http.Header, body []byte) error {
	if err := c.check(r, status, header, body); err != nil {
		return fmt.Errorf("%s %s, status %d: %w; body %.300s", r.Method, r.URL.Path, status, err, body)
	}
	return nil
}

// check leaves to the library what that looks for: listed headers, media type, body. It lets the answers to HEAD pass
// unseen, so that it is shown each as one to GET.
func (c *Contract) check(r *http.Request, status int, header http.Header, body []byte) error {
	route := c.find(r)
	response := route.Operation.Responses.Status(status)
	if response == nil {
		return fmt.Errorf("status %d is not listed", status)
	}
	listed := []string{"Connection", "Content-Length", "Content-Type", "Date"} // of HTTP itself
	for name := range response.Value.Headers {
		listed = append(listed, http.CanonicalHeaderKey(name))
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if !slices.Contains(listed, name) {
			return fmt.Errorf("header %q is not listed", name)
		}
	}
	asked := *r
	asked.Method = route.Method
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: &asked, Route: route},
		Status:                 status,
		Header:                 header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options:                &openapi3filter.Options{MultiError: true, ExcludeResponseBody: r.Method == http.MethodHead && len(body) == 0},
	})
}

// find returns the operation that answers r. HEAD is answered as GET is.
func (c *Contract) find(r *http.Request) *routers.Route {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, path := range c.Doc.Paths.InMatchingOrder() {
		if !match(path, r.URL.EscapedPath()) {
			continue
		}
		item := c.Doc.Paths.Value(path)
		operation := item.Operations()[method]
		if operation == nil {
			operation = c.fallback(http.StatusMethodNotAllowed, "MethodNotAllowed")
		}
		return &routers.Route{Spec: c.Doc, Path: path, PathItem: item, Method: method, Operation: operation}
	}
	nowhere := c.fallback(http.StatusNotFound, "NoSuchPath")
	return &routers.Route{Spec: c.Doc, PathItem: &openapi3.PathItem{}, Method: method, Operation: nowhere}
}

// fallback is what answers where the document has no operation.
func (c *Contract) fallback(status int, response string) *openapi3.Operation {
	known := c.Doc.Components.Responses
	responses := openapi3.NewResponses(openapi3.WithStatus(status, known[response]))
	if c.refusal != "" {
		responses.Set(strconv.Itoa(http.StatusUnauthorized), known[c.refusal])
	}
	return &openapi3.Operation{Responses: responses}
}

// match compares a path of the document with one of a request, as the shop's router does: a parameter may be empty
// except at the end.
func match(template, path string) bool {
	wanted, parts := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(wanted, parts, func(want, part string) bool {
		return want == part || strings.HasPrefix(want, "{")
	}) && (parts[len(parts)-1] != "" || wanted[len(wanted)-1] == "")
}

// Transport sends requests by next to a listener and fails the test on each answer that is off the contract. It may be
// used by many goroutines at once, until the test ends.
func Transport(t testing.TB, to Listener, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	c, err := to()
	if err != nil {
		t.Fatal(err)
	}
	return transport(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil {
			return answer, err
		}
		body, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		answer.Body = io.NopCloser(bytes.NewReader(body))
		if err := c.Check(r, answer.StatusCode, answer.Header, body); err != nil {
			t.Errorf("off the contract: %v", err)
		}
		return answer, nil
	})
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip returns the answer with its body read.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
