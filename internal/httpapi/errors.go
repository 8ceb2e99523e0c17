package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/lab"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// What can be wrong with a request before the service sees it.
var (
	errNoRoute    = errors.New("nothing is here")
	errNoMethod   = errors.New("this path does not take this method; the Allow header lists what it takes")
	errMalformed  = errors.New("malformed request")
	errTooLarge   = errors.New("body is too large")
	errMediaType  = errors.New("unsupported media type")
	errSlowBody   = errors.New("the body did not arrive in time")
	errNoToken    = errors.New("a token is missing")
	errNoSKU      = errors.New("no such SKU")
	errOverloaded = errors.New("too many requests at a time")
	errRateLimit  = errors.New("too many requests of one buyer")
	errNotReady   = errors.New("not ready")
	errLabOff     = errors.New("teaching mode is off")
	errLabHeader  = errors.New("header is for teaching mode")
)

// refusedError is one of the errors above with what its answer says besides.
type refusedError struct {
	error
	wait    time.Duration // of errRateLimit: until there is room
	failing []string      // of errNotReady: the checks; none where the shop shuts down
}

func (e refusedError) Unwrap() error { return e.error }

// row says how an error is answered.
type row struct {
	err    error
	status int
	slug   string // of the problem's type
	title  string
	detail string // empty: the error's own words
	again  again
}

// again says what becomes of the same request when it is sent again.
type again int

const (
	no      again = iota // it is refused again
	safe                 // it may succeed, and never happens twice
	later                // the same, and Retry-After says when
	crowded              // the same, and too many requests meet it for a line of the log each
)

// Details.
const (
	unchanged = "Nothing was changed. Send the same request again."
	slower    = "You ask for more changes in a second than one buyer may. Nothing was changed. Wait as Retry-After says and send the same request again."
	lost      = "It may have been done. Send the same request with the same Idempotency-Key again: it tells, and is never done twice."
	noToken   = "Send the header Authorization once, with Bearer, a blank, and a token."
	noKey     = "Send the header Idempotency-Key with a value of your own, such as a UUID, one for each request that is not a repeat."
	reused    = "This Idempotency-Key came with another request before. Use a new one for each request that is not a repeat."
	running   = "The first request with this Idempotency-Key still runs. Send it again for its outcome."
	ours      = "Something went wrong that is not your fault. It was logged."
)

// errorTable turns errors into answers. The first row that matches counts, so that what happened to an order stands
// before why a wait ended. Rows that a crowd meets stand first.
func errorTable() []row {
	return []row{
		{order.ErrUnknownOutcome, 503, "unknown-outcome", "Outcome unknown", lost, later},
		{order.ErrSoldOut, 409, "sold-out", "Sold out", "", no},

		{errNoToken, 401, "no-token", "Token missing", noToken, no},
		{auth.ErrToken, 401, "bad-token", "Bad token", "", no},
		{errOverloaded, 503, "overloaded", "Too many requests at a time", unchanged, crowded},
		{errRateLimit, 429, "rate-limited", "Too many requests", slower, later},
		{errNotReady, 503, "not-ready", "Not ready", "", crowded},
		{errMalformed, 400, "malformed", "Malformed request", "", no},
		{errTooLarge, 413, "too-large", "Body too large", "", no},
		{errMediaType, 415, "media-type", "Unsupported media type", "", no},
		{errSlowBody, 408, "slow-body", "Body too slow", "", safe},
		{errNoRoute, 404, "not-found", "Not found", "", no},
		{errNoMethod, 405, "method-not-allowed", "Method not allowed", "", no},
		{errLabOff, 404, "lab-off", "Teaching mode is off", "", no},
		{errLabHeader, 400, "lab-off", "Teaching mode is off", "", no},
		{lab.ErrInvalid, 400, "malformed", "Malformed request", "", no},
		{lab.ErrNotFound, 404, "not-found", "Not found", "", no},

		{order.ErrKeyMissing, 400, "key-missing", "Idempotency-Key missing", noKey, no},
		{order.ErrKeyInvalid, 400, "key-invalid", "Idempotency-Key invalid", "", no},
		{order.ErrUnknownStrategy, 400, "unknown-strategy", "Unknown strategy", "", no},
		{order.ErrMissingStrategy, 400, "missing-strategy", "Strategy not available", "", no},
		{order.ErrInvalid, 422, "invalid-order", "Invalid order", "", no},
		{order.ErrBuyer, 422, "invalid-order", "Invalid buyer", "", no},
		{order.ErrUnknownSKU, 422, "unknown-sku", "Unknown SKU", "", no},
		{order.ErrTooManyOpen, 429, "too-many-open", "Too many open orders", "", later},
		{order.ErrPurchaseLimit, 409, "purchase-limit", "Purchase limit reached", "", no},
		{order.ErrKeyReused, 422, "key-reused", "Idempotency-Key reused", reused, no},
		{order.ErrInProgress, 409, "in-progress", "Still in progress", running, later},
		{order.ErrExpired, 409, "order-expired", "Order has expired", "", no},
		{order.ErrState, 409, "order-ended", "Order has ended already", "", no},
		{order.ErrNotFound, 404, "order-not-found", "Order not found", "", no},
		{errNoSKU, 404, "sku-not-found", "SKU not found", "", no},
		{order.ErrExists, 409, "sku-exists", "SKU exists", "", no},
		{stock.ErrInvalid, 422, "invalid-sku", "Invalid SKU", "", no},

		{order.ErrStaleFence, 503, "lock-lost", "Lock lost", unchanged, later},
		{order.ErrTooLate, 503, "too-late", "Lock about to end", unchanged, later},
		{order.ErrBusy, 503, "busy", "Database busy", unchanged, later},
		{lock.ErrQueueFull, 503, "queue-full", "Too many buyers wait", unchanged, crowded},
		{lock.ErrClosed, 503, "shutting-down", "Shutting down", unchanged, later},
		{lock.ErrNoAnswer, 503, "lock-no-answer", "Lock's store does not answer", unchanged, later},
		{lock.ErrTimeout, 503, "lock-wait", "Waited too long", unchanged, later},
		{lock.ErrNotAcquired, 503, "lock-unavailable", "Lock not available", unchanged, later},
		{lock.ErrLost, 503, "lock-lost", "Lock lost", unchanged, later},
		{lock.ErrReleased, 503, "lock-lost", "Lock lost", unchanged, later},

		{context.DeadlineExceeded, 503, "interrupted", "Took too long", lost, later},
		{context.Canceled, 503, "interrupted", "Interrupted", lost, later},
	}
}

// find returns the first row that matches err, or the one for errors that were not thought of: it tells nothing of the
// cause.
func find(table []row, err error) row {
	for _, r := range table {
		if errors.Is(err, r.err) {
			return r
		}
	}
	return row{err, http.StatusInternalServerError, "internal", "Internal error", ours, safe}
}

// problem is an RFC 9457 problem.
type problem struct {
	Type        string       `json:"type"` // relative URI, stable
	Title       string       `json:"title"`
	Status      int          `json:"status"`
	Detail      string       `json:"detail,omitempty"`
	RetrySafe   bool         `json:"retry_safe"`             // the same request may be sent again as it is
	OrderStatus order.Status `json:"order_status,omitempty"` // of an order that cannot end as it was asked to
	RequestID   string       `json:"request_id"`             // the answer's X-Request-Id
	Failing     []string     `json:"failing,omitempty"`      // checks, of a shop that is not ready
}

// fail answers with the problem that the table has for err.
func (a *api) fail(c *call, err error) {
	if c.route.path != "/v1/orders" && errors.Is(err, order.ErrUnknownSKU) {
		err = errNoSKU // which the URL names: only in an order it is a mistake
	}
	r, ctx := find(a.errors, err), c.Request.Context()
	if r.status == http.StatusServiceUnavailable && errors.Is(ctx.Err(), context.Canceled) {
		r.status = 499 // as of nginx: the client has gone away, and gets nothing of the answer
	}
	c.failure, c.err = r, err
	p := problem{
		Type: "/problems/" + r.slug, Title: r.title, Status: r.status, Detail: r.detail,
		RetrySafe: r.again != no, RequestID: observe.Request(ctx),
	}
	if p.Detail == "" {
		p.Detail = err.Error()
	}
	var wait time.Duration
	if r.again >= later {
		wait = time.Second
	}
	if e, ok := errors.AsType[refusedError](err); ok {
		p.Failing, wait = e.failing, max(wait, e.wait)
	}
	if e, ok := errors.AsType[*order.Error](err); ok {
		p.OrderStatus = e.Status
		wait = max(wait, min(e.Wait, time.Hour)) // there may be room earlier: an order can be paid or cancelled
	}
	if wait > 0 { // in whole seconds, rounded up
		c.Header("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	if !c.Writer.Written() {
		c.answer(p.Status, "application/problem+json", p)
	}
}
