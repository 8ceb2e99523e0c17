// Package contract checks answers of the shop's HTTP API against openapi.yaml, in tests.
//
// An answer breaks the contract if its operation does not list its status, if a header is missing, wrong or not listed,
// if its media type differs, or if its body does not match the schema. No object may have further fields. If the
// document does not have the path or the method, the answer must be the response NoSuchPath or MethodNotAllowed; on the
// operator's listener, OperatorUnauthorized is also allowed.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"example.com/shop/internal/httpapi"
)

// Contract is the document's part for one listener. It may be used by many goroutines at once.
type Contract struct {
	Doc     *openapi3.T // has only the operations of this listener; do not change it
	refusal string      // the response to a caller without the right token; empty for none
}

// Buyers and Operator read, once, the document that this program serves. They panic if it is not valid OpenAPI 3.1.
var (
	Buyers   = sync.OnceValue(func() *Contract { return load("/", "") })
	Operator = sync.OnceValue(func() *Contract { return load("http://{operator}", "OperatorUnauthorized") })
)

// load keeps the operations of the server with this URL.
func load(server, refusal string) *Contract {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.OpenAPI)
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err))
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			servers := doc.Servers // the servers of the path and of the operation override these
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
	return &Contract{Doc: doc, refusal: refusal}
}

// Check returns an error if an answer to r breaks the contract. It checks the status and looks for headers that are not
// listed; the library checks the rest. The library ignores answers to HEAD, so that Check presents them
// as answers to GET.
func (c *Contract) Check(r *http.Request, status int, header http.Header, body []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s, status %d: %w; body %.300s", r.Method, r.URL.Path, status, err, body)
		}
	}()
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

// find returns the operation that answers r. The operation for HEAD is the one for GET.
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

// fallback returns the operation for a request that the document does not have.
func (c *Contract) fallback(status int, response string) *openapi3.Operation {
	known := c.Doc.Components.Responses
	responses := openapi3.NewResponses(openapi3.WithStatus(status, known[response]))
	if c.refusal != "" {
		responses.Set(strconv.Itoa(http.StatusUnauthorized), known[c.refusal])
	}
	return &openapi3.Operation{Responses: responses}
}

// match compares a path of the document with a request's, as the router does: only the last parameter may not be empty.
func match(template, path string) bool {
	wanted, parts := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(wanted, parts, func(want, part string) bool {
		return want == part || strings.HasPrefix(want, "{")
	}) && (parts[len(parts)-1] != "" || wanted[len(wanted)-1] == "")
}

// Answer is the answer of a listener.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error // there was no answer, or it breaks the contract
}

// Send sends a request over a connection of its own, and checks the answer. headers are "Name: value" lines.
func (c *Contract) Send(method, url, body string, headers ...string) Answer {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return Answer{Err: err}
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	client := &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	w, err := client.Do(r)
	if err != nil {
		return Answer{Err: err}
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err == nil {
		err = c.Check(r, w.StatusCode, w.Header, text)
	}
	return Answer{w.StatusCode, w.Header, string(text), err}
}

// Want fails the test unless the answer has the status.
func (a Answer) Want(t testing.TB, status int) Answer {
	t.Helper()
	if a.Err != nil || a.Status != status {
		t.Fatalf("got %d %s, %v; want status %d", a.Status, a.Body, a.Err, status)
	}
	return a
}

// Decode reads the body, JSON, into v.
func (a Answer) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		t.Fatalf("%s: %v", a.Body, err)
	}
}
