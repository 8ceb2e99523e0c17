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
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"example.com/shop/internal/order/orderhttp"
)

// Contract is what the document has of one listener. It may be used by many
// goroutines at once.
type Contract struct {
	doc     *openapi3.T
	refusal string // the response to those who may not even know what is there; empty for none
}

// Buyers and Operator read the document that this program serves, once. They fail
// if that is not valid OpenAPI 3.1.
var (
	Buyers   Listener = sync.OnceValues(func() (*Contract, error) { return load("/", "") })
	Operator Listener = sync.OnceValues(func() (*Contract, error) { return load("http://{operator}", "OperatorUnauthorized") })
)

// Listener reads what the document has of one listener.
type Listener func() (*Contract, error)

func load(server, refusal string) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(orderhttp.OpenAPI()))
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	keepServer(doc, server)
	return &Contract{doc: doc, refusal: refusal}, nil
}

// Doc returns the document with the operations of this listener alone, not to be
// changed.
func (c *Contract) Doc() *openapi3.T { return c.doc }

// Check returns what is off the contract in an answer to r. The body of r is looked
// at where r.GetBody can give it again.
func (c *Contract) Check(r *http.Request, status int, header http.Header, body []byte) error {
	route, parameters := c.find(r)
	response := route.Operation.Responses.Status(status)
	if response == nil {
		return fmt.Errorf("%s %s: status %d is not listed; body %.300s", r.Method, r.URL.Path, status, body)
	}
	if err := errors.Join(
		checkHeaders(response.Value, header),
		checkAnswer(route, r, response, header, body),
		checkEmpty(r, response.Value, body),
	); err != nil {
		return fmt.Errorf("%s %s, status %d: %w; body %.300s", r.Method, r.URL.Path, status, err, body)
	}
	if status < http.StatusMultipleChoices {
		return checkRequest(r, route, parameters)
	}
	return nil
}

// checkAnswer is what the library checks: listed headers, media type, body. It
// lets 304, and the answers to HEAD, pass unseen, so that it is shown each as a
// 200 to another method.
func checkAnswer(route *routers.Route, r *http.Request, response *openapi3.ResponseRef, header http.Header, body []byte) error {
	asked, seen := *r, *route
	asked.Method = route.Method
	seen.Operation = &openapi3.Operation{Responses: openapi3.NewResponses(openapi3.WithStatus(http.StatusOK, response))}
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: &asked, Route: &seen},
		Status:                 http.StatusOK,
		Header:                 header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options:                &openapi3filter.Options{MultiError: true, ExcludeResponseBody: r.Method == http.MethodHead && len(body) == 0},
	})
}

// checkHeaders refuses headers that the document does not list, which the library
// does not look at.
func checkHeaders(response *openapi3.Response, header http.Header) error {
	// Of HTTP itself, in every answer.
	listed := []string{"Connection", "Content-Length", "Content-Type", "Date"}
	for name := range response.Headers {
		listed = append(listed, http.CanonicalHeaderKey(name))
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if !slices.Contains(listed, name) {
			return fmt.Errorf("header %q is not listed", name)
		}
	}
	return nil
}

// checkEmpty refuses a body where the document has none.
func checkEmpty(r *http.Request, response *openapi3.Response, body []byte) error {
	if len(response.Content) == 0 && len(body) > 0 && r.Method != http.MethodHead {
		return fmt.Errorf("a body of %d bytes, want none", len(body))
	}
	return nil
}
