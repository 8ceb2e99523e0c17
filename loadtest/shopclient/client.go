package shopclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// NewConnections returns connections to shops: at most n that rest per shop, and a limit for each request from its
// first byte to the last of the answer. Close them with CloseIdleConnections.
func NewConnections(n int, timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			MaxIdleConnsPerHost: n,
			IdleConnTimeout:     5 * time.Minute,
			DisableCompression:  true,
		},
		CheckRedirect: noRedirect,
	}
}

// NewBuyer returns what NewConnections does for one goroutine, with one connection, which stands until another shop is
// asked or CloseIdleConnections. Its buffers are small, since a crowd shares the machine with the shops.
func NewBuyer(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &oneConnection{Transport: &http.Transport{
			IdleConnTimeout:    30 * time.Second,
			DisableCompression: true,
			ReadBufferSize:     2 << 10,
			WriteBufferSize:    1 << 10,
		}},
		CheckRedirect: noRedirect,
	}
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

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Pause waits for d and reports whether ctx lasted as long.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Client speaks to one shop.
type Client struct {
	base     string
	operator string // where what the operator asks goes; empty: base
	conns    *http.Client
	keys     *Keys // nil: buyers name themselves
}

// New returns a client of the shop at base, such as http://127.0.0.1:8080.
func New(base string, conns *http.Client) *Client {
	return &Client{base: strings.TrimRight(base, "/"), conns: conns}
}

// WithKeys returns a client of a shop that wants tokens, whose operator's listener is at that address.
func (c *Client) WithKeys(keys *Keys, operator string) *Client {
	return &Client{base: c.base, operator: operator, conns: c.conns, keys: keys}
}

// Connect makes sure that a connection to the shop stands, by a request that costs the shop nothing. Any answer will
// do.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/healthz", nil, nil)
	return err
}

// response is an answer that was read to its end.
type response struct {
	status int
	header http.Header
	body   []byte
	at     time.Time // when its last byte had come
}

// asOperator returns the client that sends requests to the operator's listener.
func (c *Client) asOperator() *Client {
	return &Client{base: cmp.Or(c.operator, c.base), conns: c.conns, keys: c.keys}
}

func (c *Client) do(ctx context.Context, method, path string, header http.Header, body any) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return response{}, err
	}
	maps.Copy(req.Header, header)
	if c.keys != nil {
		if err := c.keys.show(req.Header); err != nil {
			return response{}, err
		}
	}
	var encoded []byte
	if body != nil {
		if encoded, err = json.Marshal(body); err != nil {
			return response{}, err
		}
		req.Header.Set("Content-Type", "application/json")
	}
	// With a body, empty or not, but without GetBody, the transport cannot send the request a second time on its own account,
	// which it does for a GET and for one with an Idempotency-Key.
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(encoded)), int64(len(encoded))
	resp, err := c.conns.Do(req)
	if err != nil {
		return response{}, err
	}
	read, err := io.ReadAll(resp.Body)
	at := time.Now()
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return response{}, fmt.Errorf("%s %s: answer %d broke off: %w", method, path, resp.StatusCode, err)
	}
	return response{resp.StatusCode, resp.Header, read, at}, nil
}

// get sends a request for which only one kind of answer is of use, and reads it into v unless that is nil. ErrNotFound:
// the status is 404.
func (c *Client) get(ctx context.Context, method, path string, body, v any) error {
	r, err := c.do(ctx, method, path, nil, body)
	switch {
	case err != nil:
		return err
	case r.status == http.StatusNotFound:
		err = ErrNotFound
	case r.status == http.StatusServiceUnavailable:
		err = fmt.Errorf("%w: %v", ErrUnavailable, r.problem())
	case !r.good():
		err = fmt.Errorf("answer %d: %v", r.status, r.problem())
	case v != nil:
		err = json.Unmarshal(r.body, v)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// Explain says in one line why no answer came, alike for like causes: without the port numbers that make each such error a
// different text.
func Explain(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "no answer in time"
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network.Op + ": " + network.Err.Error()
	}
	if asked, ok := errors.AsType[*url.Error](err); ok {
		return asked.Err.Error()
	}
	return err.Error()
}

func (r response) good() bool { return r.status == http.StatusOK || r.status == http.StatusCreated }

var (
	// ErrNotLab means that the shop is no teaching shop, or no shop at all.
	ErrNotLab = errors.New("not a teaching shop")

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

// SoldOut reports whether the problem is that too few units are left.
func (p Problem) SoldOut() bool { return p.Code() == "sold-out" }

// String is one line for people.
func (p Problem) String() string {
	said := slices.DeleteFunc([]string{p.Title, p.Detail}, func(s string) bool { return s == "" })
	return cmp.Or(strings.Join(said, ": "), p.Type)
}

func (r response) problem() Problem {
	var p Problem
	if json.Unmarshal(r.body, &p) != nil {
		return Problem{Detail: fmt.Sprintf("%.200q", r.body)}
	}
	return p
}
