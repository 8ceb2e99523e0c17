// Package shopclient speaks a shop's HTTP API, as a buyer or an operator would.
//
// It sends each request once: no call retries, so that callers can count requests. An answer that the API foresees is
// no error, whatever its status: Buy returns it as an Answer. An error means that no readable answer came.
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

// NewConnections returns connections to shops: at most n that rest per shop, and a limit for each request from its
// first byte to the last of the answer. Close them with CloseIdleConnections.
func NewConnections(n int, timeout time.Duration) *http.Client {
	return newConnections(timeout, &http.Transport{
		MaxIdleConnsPerHost: n, IdleConnTimeout: 5 * time.Minute, DisableCompression: true,
	})
}

// NewBuyer returns what NewConnections does for one goroutine, with one connection, which stands until another shop is
// asked or CloseIdleConnections. Its buffers are small, since a crowd shares the machine with the shops.
func NewBuyer(timeout time.Duration) *http.Client {
	return newConnections(timeout, &oneConnection{Transport: &http.Transport{
		IdleConnTimeout: 30 * time.Second, DisableCompression: true, ReadBufferSize: 2 << 10, WriteBufferSize: 1 << 10,
	}})
}

func newConnections(timeout time.Duration, transport http.RoundTripper) *http.Client {
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Timeout: timeout, Transport: transport, CheckRedirect: noRedirect}
}

// oneConnection closes the connection to one shop before it opens one to another: connections to all shops would need more
// file descriptors than many machines allow.
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

// Pause waits for d and reports whether ctx lasted as long.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Client speaks to one shop. What returns an Answer sends one request; an error means that the outcome is unknown.
type Client struct {
	base     string
	operator string // where requests of the operator and the payment service go; empty: base
	conns    *http.Client
	keys     *Keys // nil: buyers name themselves
}

// New returns a client of the shop at base, such as http://127.0.0.1:8080.
func New(base string, conns *http.Client) *Client {
	return &Client{base: strings.TrimRight(base, "/"), conns: conns}
}

// WithKeys returns a client of a shop that wants tokens, unless keys is nil. Its operator's listener is at that address.
func (c *Client) WithKeys(keys *Keys, operator string) *Client {
	return &Client{base: c.base, operator: operator, conns: c.conns, keys: keys}
}

// Connect makes sure that a connection stands, by a request that costs the shop nothing. Any answer will do.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/healthz"}, nil)
	return err
}

// request is one request to a shop.
type request struct {
	method, path string
	buyer        string      // who asks; empty: the operator
	listener     bool        // the operator's
	payments     bool        // the payment service asks
	key          string      // idempotency key; empty for none
	header       http.Header // besides
	body         any         // as JSON; nil for none
	sku          string      // which the Trace of the answer is about
}

// do sends a request, and reads what the shop fulfilled into a value, unless that is nil.
func (c *Client) do(ctx context.Context, q request, into any) (a Answer, err error) {
	base := c.base
	if q.listener || q.payments {
		base = cmp.Or(c.operator, c.base)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, base+q.path, nil)
	if err != nil {
		return a, err
	}
	if err := c.identify(q, req.Header); err != nil {
		return a, err
	}
	var encoded []byte
	if q.body != nil {
		if encoded, err = json.Marshal(q.body); err != nil {
			return a, err
		}
		req.Header.Set("Content-Type", "application/json")
	}
	// With a body, empty or not, but without GetBody, the transport cannot send the request a second time on its own account,
	// which it does for a GET and for one with an Idempotency-Key.
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(encoded)), int64(len(encoded))
	resp, err := c.conns.Do(req)
	if err != nil {
		return a, err
	}
	read, err := io.ReadAll(resp.Body)
	at := time.Now()
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return a, fmt.Errorf("%s %s: answer %d broke off: %w", q.method, q.path, resp.StatusCode, err)
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // shops send no dates
	a = Answer{
		At: at, Status: resp.StatusCode, RetryAfter: time.Duration(seconds) * time.Second,
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

// identify sets the headers of a request. A shop that wants tokens is shown one instead of a buyer's name.
func (c *Client) identify(q request, h http.Header) error {
	maps.Copy(h, q.header)
	if q.key != "" {
		h.Set("Idempotency-Key", q.key)
	}
	if c.keys != nil {
		token, err := c.keys.token(q)
		h.Set("Authorization", "Bearer "+token)
		return err
	}
	if q.buyer != "" {
		h.Set("Shop-Buyer", q.buyer)
	}
	return nil
}

// get sends a request for which only one kind of answer is of use, and reads it into a value unless that is nil.
// ErrNotFound: the status is 404.
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
	At         time.Time // when its last byte had come
	Status     int
	Order      Order         // if it was placed
	Problem    Problem       // why no order was placed
	RetryAfter time.Duration // how long the shop asks to wait before the next try; 0 if it does not ask
	Trace      *Trace        // when the request took which step; nil if the shop does not report it
}

func (a Answer) good() bool { return a.Status == http.StatusOK || a.Status == http.StatusCreated }

// Explain says in one line how a request ended, alike for like causes: without the port numbers of broken connections.
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
	// ErrNotFound means that the shop knows no such thing.
	ErrNotFound = errors.New("not found")

	// ErrUnavailable means that the shop, or a server that it needs, is too busy: ask again.
	ErrUnavailable = errors.New("answer 503")
)

// Problem is what a shop says about a request that it did not fulfil (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`

	// RetrySafe: the same request may be sent again as it is.
	RetrySafe bool `json:"retry_safe"`

	// OrderStatus is how an order has ended that cannot end as requested.
	OrderStatus string `json:"order_status"`

	// Refund: the payment does not pay its order, and its money has to be refunded.
	Refund bool `json:"refund"`
}

// Code is the last part of the type, such as sold-out; empty for a problem that is not the shop's.
func (p Problem) Code() string {
	_, code, _ := strings.Cut(p.Type, "/problems/")
	return code
}

// String is one line for people.
func (p Problem) String() string {
	said := slices.DeleteFunc([]string{p.Title, p.Detail}, func(s string) bool { return s == "" })
	return cmp.Or(strings.Join(said, ": "), p.Type)
}

// Keys open a shop that wants tokens. Many clients may use them at once.
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

// token returns the token for a request. A buyer's is good for longer than a load test takes, whatever the shop's clock.
func (k *Keys) token(q request) (string, error) {
	switch {
	case q.payments:
		return k.Payments, nil
	case q.buyer == "":
		return k.Operator, nil
	}
	if token, ok := k.buyers.Load(q.buyer); ok {
		return token.(string), nil
	}
	now := time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": q.buyer, "aud": "shop:buyer", "nbf": now.Add(-12 * time.Hour).Unix(), "exp": now.Add(24 * time.Hour).Unix(),
	}).SignedString([]byte(k.Secret))
	if err == nil {
		k.buyers.Store(q.buyer, token)
	}
	return token, err
}
