// Package shopclient speaks a shop's HTTP API, as a buyer or an operator would.
//
// It sends each request once. No call retries, so that callers can count requests. An answer of the API is not an
// error, whatever its status: Buy returns it as an Answer. An error means that no readable answer came.
//
// A Client may be used by many goroutines at once.
package shopclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// NewConnections returns connections to shops: at most n idle ones for each shop. The timeout counts from the first
// byte of a request to the last byte of its answer. Close the connections with CloseIdleConnections.
func NewConnections(n int, timeout time.Duration) *http.Client {
	return newConnections(timeout, &http.Transport{
		MaxIdleConnsPerHost: n, IdleConnTimeout: 5 * time.Minute, DisableCompression: true,
	})
}

// NewBuyer is like NewConnections, for one goroutine. There is one connection, which stays open until another shop is
// asked or CloseIdleConnections is called. Its buffers are small, because a crowd shares the machine with the shops.
func NewBuyer(timeout time.Duration) *http.Client {
	return newConnections(timeout, &oneConnection{Transport: &http.Transport{
		IdleConnTimeout: 30 * time.Second, DisableCompression: true, ReadBufferSize: 2 << 10, WriteBufferSize: 1 << 10,
	}})
}

func newConnections(timeout time.Duration, transport http.RoundTripper) *http.Client {
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Timeout: timeout, Transport: transport, CheckRedirect: noRedirect}
}

// oneConnection closes the connection to one shop before it opens a connection to another. Connections to all shops
// would need more file descriptors than many machines allow.
type oneConnection struct {
	*http.Transport
	to string
}

// RoundTrip implements http.RoundTripper.
func (o *oneConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	if o.to != r.URL.Host {
		o.CloseIdleConnections()
		o.to = r.URL.Host
	}
	return o.Transport.RoundTrip(r)
}

// Pause waits for d. It returns false if ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Client speaks to one shop. Methods that return an Answer send one request; after an error, the outcome is unknown.
type Client struct {
	base     string
	operator string // for requests of the operator and the payment service; empty: base
	conns    *http.Client
	keys     *Keys // nil: buyers name themselves
}

// New returns a client of the shop at base, such as http://127.0.0.1:8080.
func New(base string, conns *http.Client) *Client {
	return &Client{base: strings.TrimRight(base, "/"), conns: conns}
}

// WithKeys returns a client of a shop that requires tokens, unless keys is nil. operator is its
// listener for the operator.
func (c *Client) WithKeys(keys *Keys, operator string) *Client {
	return &Client{base: c.base, operator: operator, conns: c.conns, keys: keys}
}

// Connect opens a connection, by a request that costs the shop nothing. Any answer is fine.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/healthz"}, nil)
	return err
}

// request is one request to a shop.
type request struct {
	method, path string
	buyer        string      // sends the request; empty: the operator
	listener     bool        // send it to the operator's listener
	payments     bool        // the payment service sends it
	key          string      // idempotency key; empty for none
	header       http.Header // further headers
	body         any         // as JSON; nil for none
	sku          string      // of the answer's Trace
}

// do sends a request. If the shop fulfills it, do reads the answer into a value, unless that is nil.
func (c *Client) do(ctx context.Context, q request, into any) (a Answer, err error) {
	base := c.base
	if q.listener || q.payments {
		base = cmp.Or(c.operator, c.base)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, base+q.path, nil)
	if err != nil {
		return a, err
	}
	c.identify(q, req.Header)
	var encoded []byte
	if q.body != nil {
		if encoded, err = json.Marshal(q.body); err != nil {
			return a, err
		}
		req.Header.Set("Content-Type", "application/json")
	}
	// The transport repeats a GET, and a request with an Idempotency-Key, by itself. It cannot do so if the request has
	// a body, even an empty one, but no GetBody.
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(encoded)), int64(len(encoded))
	resp, err := c.conns.Do(req)
	if err != nil {
		return a, err
	}
	read, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return a, fmt.Errorf("%s %s: answer %d broke off: %w", q.method, q.path, resp.StatusCode, err)
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // shops send no dates
	a = Answer{
		Status: resp.StatusCode, RetryAfter: time.Duration(seconds) * time.Second,
		Trace: parseTrace(resp.Header.Get("Shop-Trace"), q.sku),
	}
	switch {
	case !a.good():
		if json.Unmarshal(read, &a.Problem) != nil {
			a.Problem = Problem{Detail: fmt.Sprintf("%.200q", read)}
		}
	case into != nil:
		if err := json.Unmarshal(read, into); err != nil {
			return Answer{}, fmt.Errorf("%s %s: answer %d: %w", q.method, q.path, a.Status, err)
		}
	}
	return a, nil
}

// identify sets the headers of a request. A shop that requires tokens gets a token instead of the buyer's name.
func (c *Client) identify(q request, h http.Header) {
	maps.Copy(h, q.header)
	if q.key != "" {
		h.Set("Idempotency-Key", q.key)
	}
	if c.keys != nil {
		h.Set("Authorization", "Bearer "+c.keys.token(q))
	} else if q.buyer != "" {
		h.Set("Shop-Buyer", q.buyer)
	}
}

// get sends a request, and reads the answer into a value, unless that is nil. Any other answer is an
// error; ErrNotFound is a 404.
func (c *Client) get(ctx context.Context, q request, into any) error {
	a, err := c.do(ctx, q, into)
	switch {
	case err != nil:
		return err
	case a.Status == http.StatusNotFound:
		err = ErrNotFound
	case a.Status == http.StatusServiceUnavailable:
		err = fmt.Errorf("%w: %v", ErrUnavailable, a.Problem)
	case !a.good():
		err = fmt.Errorf("answer %d: %v", a.Status, a.Problem)
	default:
		return nil
	}
	return fmt.Errorf("%s %s: %w", q.method, q.path, err)
}

// Answer is the shop's answer to a request.
type Answer struct {
	Status     int
	Order      Order         // if an order was placed
	Problem    Problem       // if no order was placed
	RetryAfter time.Duration // time that the shop asks to wait before the next try; 0 if it does not ask
	Trace      *Trace        // times of the request's steps; nil if the shop does not report them
}

func (a Answer) good() bool { return a.Status == http.StatusOK || a.Status == http.StatusCreated }

// Explain says in one line how a request ended. Equal causes have equal texts, without port numbers.
func Explain(a Answer, err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "no answer in time"
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network.Op + ": " + network.Err.Error()
	}
	if asked, ok := errors.AsType[*url.Error](err); ok {
		return asked.Err.Error()
	}
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(fmt.Sprint(a.Status, " ", a.Problem))
}

var (
	// ErrNotFound means that the shop answered 404.
	ErrNotFound = errors.New("not found")

	// ErrUnavailable means that the shop, or a server that it needs, is too busy: try again.
	ErrUnavailable = errors.New("answer 503")
)

// Problem is the shop's explanation for a request that it did not fulfill (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`

	// RetrySafe: the same request may be sent again as it is.
	RetrySafe bool `json:"retry_safe"`

	// OrderStatus is the status of an order that cannot end as requested.
	OrderStatus string `json:"order_status"`

	// Refund: the payment does not pay its order and must be refunded.
	Refund bool `json:"refund"`
}

// Code returns the last part of the type, such as sold-out. It is empty for a problem that is not the shop's.
func (p Problem) Code() string {
	_, code, _ := strings.Cut(p.Type, "/problems/")
	return code
}

// String returns one line for people.
func (p Problem) String() string {
	said := slices.DeleteFunc([]string{p.Title, p.Detail}, func(s string) bool { return s == "" })
	return cmp.Or(strings.Join(said, ": "), p.Type)
}

// Keys are for a shop that requires tokens. Many clients may use them at once.
type Keys struct {
	Secret   string // signs buyers' tokens
	Operator string // the operator's token
	Payments string // the payment service's token

	buyers sync.Map // their tokens, by name
}

// NewKeys returns random keys.
func NewKeys() *Keys {
	random := make([]byte, 96)
	_, _ = rand.Read(random) // it never fails
	encode := base64.StdEncoding.EncodeToString
	return &Keys{Secret: encode(random[:32]), Operator: encode(random[32:64]), Payments: encode(random[64:])}
}

// Environ returns the environment variables that give a shop these keys.
func (k *Keys) Environ() []string {
	return []string{"SHOP_TOKEN_SECRET=" + k.Secret, "SHOP_OPERATOR_TOKEN=" + k.Operator, "SHOP_PAYMENTS_TOKEN=" + k.Payments}
}

// token returns the token for a request. A buyer's token is valid for longer than a load test takes, by any clock.
func (k *Keys) token(q request) string {
	switch {
	case q.payments:
		return k.Payments
	case q.buyer == "":
		return k.Operator
	}
	if token, ok := k.buyers.Load(q.buyer); ok {
		return token.(string)
	}
	now := time.Now()
	token, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": q.buyer, "aud": "shop:buyer", "nbf": now.Add(-12 * time.Hour).Unix(), "exp": now.Add(24 * time.Hour).Unix(),
	}).SignedString([]byte(k.Secret)) // it never fails
	k.buyers.Store(q.buyer, token)
	return token
}
