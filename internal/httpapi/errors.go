package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// ErrMalformed means that a request cannot be understood. Config.Identify and Config.Orders may also return it.
var ErrMalformed = errors.New("malformed request")

// Errors of requests that do not reach the service.
var (
	errNoRoute    = errors.New("nothing is here")
	errNoMethod   = errors.New("this path does not take this method; the Allow header lists what it takes")
	errTooLarge   = errors.New("body is too large")
	errMediaType  = errors.New("unsupported media type")
	errSlowBody   = errors.New("the body did not arrive in time")
	errNoToken    = errors.New("a token is missing")
	errNoSKU      = errors.New("no such SKU")
	errOverloaded = errors.New("too many requests at a time")
	errInFlight   = errors.New("too many requests of one buyer at a time")
	errRateLimit  = errors.New("too many requests of one buyer")
	errNotReady   = errors.New("not ready")

	errPaidByProvider = errors.New("orders are paid through the payment provider, not by this call: see docs/payments.md")
)

// notReadyError is errNotReady with the names of the failed checks; none while the shop shuts down.
type notReadyError struct {
	error
	failing []string
}

func (e notReadyError) Unwrap() error { return e.error }

// row maps an error to its answer.
type row struct {
	err    error
	status int
	slug   string // of the problem's type
	title  string
	detail string // empty: the error's text
	retry  retry
}

// retry says what happens if the same request is sent again.
type retry int

const (
	never   retry = iota // it is refused again
	safe                 // it may succeed, and never happens twice
	later                // like safe, and the answer has a Retry-After
	crowded              // like later, but too frequent under load for a warning in the log
)

// Details of problems tell the client what to do.
const (
	detailUnchanged = "Nothing was changed. Send the same request again."
	detailSlower    = "You send more changes per second than one buyer may. Nothing was changed. " +
		"Wait as long as Retry-After says, then send the same request again."
	detailInFlight = "You have too many requests in progress for one buyer. Nothing was changed. " +
		"Wait for their answers, then send the same request again."
	detailLost = "The request may have been carried out. " +
		"Send it again, with the same Idempotency-Key if it has one: nothing is done twice."
	detailNoToken = "Send the header Authorization once: Bearer, a space, and a token."
	detailNoKey   = "Send the header Idempotency-Key with a value of your own, such as a UUID: " +
		"a new value for each request that is not a repeat."
	detailReused   = "Another request already used this Idempotency-Key. Use a new key for each request that is not a repeat."
	detailInternal = "Something went wrong that is not your fault. It was logged."
)

// errorTable maps errors to answers. The first row that matches counts. So the outcome of an order comes before the
// reason why a wait ended, and frequent errors come first.
func errorTable() []row {
	return []row{
		{order.ErrUnknownOutcome, 503, "unknown-outcome", "Outcome unknown", detailLost, later},
		{order.ErrSoldOut, 409, "sold-out", "Sold out", "", never},

		{errNoToken, 401, "no-token", "Token missing", detailNoToken, never},
		{auth.ErrToken, 401, "bad-token", "Bad token", "", never},
		{errOverloaded, 503, "overloaded", "Too many requests at a time", detailUnchanged, crowded},
		{errInFlight, 429, "too-many-in-flight", "Too many requests at a time", detailInFlight, later},
		{errRateLimit, 429, "rate-limited", "Too many requests", detailSlower, later},
		{errNotReady, 503, "not-ready", "Not ready", "", crowded},
		{ErrMalformed, 400, "malformed", "Malformed request", "", never},
		{errTooLarge, 413, "too-large", "Body too large", "", never},
		{errMediaType, 415, "media-type", "Unsupported media type", "", never},
		{errSlowBody, 408, "slow-body", "Body too slow", "", safe},
		{errNoRoute, 404, "not-found", "Not found", "", never},
		{errNoMethod, 405, "method-not-allowed", "Method not allowed", "", never},

		{order.ErrKeyMissing, 400, "key-missing", "Idempotency-Key missing", detailNoKey, never},
		{order.ErrKeyInvalid, 400, "key-invalid", "Idempotency-Key invalid", "", never},
		{order.ErrInvalid, 422, "invalid-order", "Invalid order", "", never},
		{order.ErrBuyer, 422, "invalid-order", "Invalid buyer", "", never},
		{order.ErrUnknownSKU, 422, "unknown-sku", "Unknown SKU", "", never},
		{order.ErrTooManyOpen, 429, "too-many-open", "Too many open orders", "", later},
		{order.ErrPurchaseLimit, 409, "purchase-limit", "Purchase limit reached", "", never},
		{order.ErrKeyReused, 422, "key-reused", "Idempotency-Key reused", detailReused, never},
		{order.ErrExpired, 409, "order-expired", "Order has expired", "", never},
		{order.ErrState, 409, "order-ended", "Order has ended already", "", never},
		{order.ErrAlreadyPaid, 409, "already-paid", "Paid already", "", never},
		{order.ErrAmountMismatch, 409, "amount-mismatch", "Amount is not the order's total", "", never},
		{order.ErrAlreadyRefunded, 409, "already-refunded", "Refunded already", "", never},
		{order.ErrPayment, 422, "invalid-payment", "Invalid payment", "", never},
		{order.ErrPaymentReused, 422, "payment-reused", "Payment reused", "", never},
		{order.ErrNotFound, 404, "order-not-found", "Order not found", "", never},
		{order.ErrNoPayment, 404, "payment-not-found", "Payment not found", "", never},
		{errPaidByProvider, 403, "paid-by-provider", "Buyers do not pay here", "", never},
		{errNoSKU, 404, "sku-not-found", "SKU not found", "", never},
		{order.ErrExists, 409, "sku-exists", "SKU exists", "", never},
		{stock.ErrInvalid, 422, "invalid-sku", "Invalid SKU", "", never},

		{syscall.EMFILE, 503, "too-few-descriptors", "Too few file descriptors", detailUnchanged, later},
		{order.ErrStaleFence, 503, "lock-lost", "Lock lost", detailUnchanged, later},
		{order.ErrTooLate, 503, "too-late", "Lock about to end", detailUnchanged, later},
		{order.ErrBusy, 503, "busy", "Database busy", detailUnchanged, later},
		{lock.ErrQueueFull, 503, "queue-full", "Too many buyers wait", detailUnchanged, crowded},
		{lock.ErrClosed, 503, "shutting-down", "Shutting down", detailUnchanged, later},
		{lock.ErrNoAnswer, 503, "lock-no-answer", "Lock's store does not answer", detailUnchanged, later},
		{lock.ErrTimeout, 503, "lock-wait", "Waited too long", detailUnchanged, crowded},
		{lock.ErrNotAcquired, 503, "lock-unavailable", "Lock not available", detailUnchanged, later},
		{lock.ErrLost, 503, "lock-lost", "Lock lost", detailUnchanged, later},
		{lock.ErrReleased, 503, "lock-lost", "Lock lost", detailUnchanged, later},

		{context.DeadlineExceeded, 503, "interrupted", "Took too long", detailLost, later},
		{context.Canceled, 503, "interrupted", "Interrupted", detailLost, later},
	}
}

// find returns the first row that matches err. An error without a row is a 500 that does not reveal its cause.
func find(table []row, err error) row {
	for _, r := range table {
		if errors.Is(err, r.err) {
			return r
		}
	}
	return row{err, http.StatusInternalServerError, "internal", "Internal error", detailInternal, safe}
}

// problem is an RFC 9457 problem.
type problem struct {
	Type        string       `json:"type"` // relative URI, stable
	Title       string       `json:"title"`
	Status      int          `json:"status"`
	Detail      string       `json:"detail,omitempty"`
	RetrySafe   bool         `json:"retry_safe"`             // the same request may be sent again as it is
	OrderStatus order.Status `json:"order_status,omitempty"` // of the order, if it cannot end as requested
	Refund      bool         `json:"refund,omitempty"`       // the payment must be refunded
	RequestID   string       `json:"request_id"`             // the answer's X-Request-Id
	Failing     []string     `json:"failing,omitempty"`      // failed checks of a shop that is not ready
}

// fail answers with the problem of err in the table.
func (a *api) fail(c *call, err error) {
	if c.route.path != "/v1/orders" && errors.Is(err, order.ErrUnknownSKU) {
		err = errNoSKU // the URL names the SKU: a 404; in an order it is a 422
	}
	r := find(a.errors, err)
	ctx := c.Request.Context()
	if r.status == http.StatusServiceUnavailable && errors.Is(ctx.Err(), context.Canceled) {
		r.status = 499 // as in nginx: the client has closed the connection
	}
	c.failure, c.err = r, err
	p := problem{
		Type: "/problems/" + r.slug, Title: r.title, Status: r.status, Detail: r.detail,
		RetrySafe: r.retry != never, RequestID: observe.Request(ctx),
	}
	if p.Detail == "" {
		p.Detail = err.Error()
	}
	var wait time.Duration
	if r.retry >= later {
		wait = time.Second
	}
	if e, ok := errors.AsType[notReadyError](err); ok {
		p.Failing = e.failing
	}
	if e, ok := errors.AsType[*order.Error](err); ok {
		p.OrderStatus, p.Refund, c.refund = e.Status, e.Refund, e.Refund
		wait = max(wait, min(e.Wait, time.Hour)) // at most an hour: an open order may be paid or cancelled earlier
	}
	if wait > 0 { // in whole seconds, rounded up
		c.Header("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	if !c.Writer.Written() {
		c.answer(p.Status, "application/problem+json", p)
	}
}
