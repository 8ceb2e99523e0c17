package orderhttp

import (
	"context"
	"errors"
	"net/http"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/tape"
)

// row says how an error is answered.
type row struct {
	err        error
	status     int
	slug       string // of the problem's type
	title      string
	detail     string // empty: the error's own words
	retrySafe  bool
	retryAfter int // seconds
}

const (
	slower  = "You ask for more changes in a second than one buyer may. Nothing was changed. Wait as Retry-After says and send the same request again."
	again   = "Nothing was changed. Send the same request again."
	unknown = "The order may have been placed. Send the same request with the same Idempotency-Key: it tells, and never buys twice."
	ask     = "The order may have been changed. Send the same request again: it tells, and never pays twice."
	look    = "The stock may have been changed. Send the same request again: it tells, and never counts twice."
	unsure  = "It is not known how far this got. Send it again: an order with the same Idempotency-Key is never placed twice."
)

// table turns errors into answers. The first row that matches counts, so that
// what happened to an order stands before why a wait ended.
type table []row

func errorTable() table {
	return table{
		{err: order.ErrUnknownOutcome, status: http.StatusServiceUnavailable, slug: "unknown-outcome", title: "Outcome unknown", detail: unknown, retrySafe: true, retryAfter: 1},

		// A crowd is told this: it is found soon. Of the rows behind it, a lost lock's alone may match as well.
		{err: stock.ErrSoldOut, status: http.StatusConflict, slug: "sold-out", title: "Sold out"},

		{err: errNoToken, status: http.StatusUnauthorized, slug: "no-token", title: "Token missing", detail: "Send the header Authorization once, with Bearer, a blank, and a token."},
		{err: errNotOurs, status: http.StatusUnauthorized, slug: "bad-token", title: "Bad token"},
		{err: auth.ErrToken, status: http.StatusUnauthorized, slug: "bad-token", title: "Bad token"},
		{err: errOverloaded, status: http.StatusServiceUnavailable, slug: "overloaded", title: "Too many requests at a time", detail: again, retrySafe: true, retryAfter: 1},
		{err: errTooMany, status: http.StatusTooManyRequests, slug: "rate-limited", title: "Too many requests", detail: slower, retrySafe: true, retryAfter: 1},
		{err: errUncounted, status: http.StatusServiceUnavailable, slug: "rate-unknown", title: "Requests cannot be counted", detail: again, retrySafe: true, retryAfter: 1},
		{err: errMalformed, status: http.StatusBadRequest, slug: "malformed", title: "Malformed request"},
		{err: errTooLarge, status: http.StatusRequestEntityTooLarge, slug: "too-large", title: "Body too large"},
		{err: errMediaType, status: http.StatusUnsupportedMediaType, slug: "media-type", title: "Unsupported media type"},
		{err: errSlowBody, status: http.StatusRequestTimeout, slug: "slow-body", title: "Body too slow", retrySafe: true},
		{err: errNoRoute, status: http.StatusNotFound, slug: "not-found", title: "Not found"},
		{err: errNoMethod, status: http.StatusMethodNotAllowed, slug: "method-not-allowed", title: "Method not allowed"},
		{err: errLabOff, status: http.StatusNotFound, slug: "lab-off", title: "Teaching mode is off"},
		{err: errLabHeader, status: http.StatusBadRequest, slug: "lab-off", title: "Teaching mode is off"},
		{err: tape.ErrInvalid, status: http.StatusBadRequest, slug: "malformed", title: "Malformed request"},
		{err: tape.ErrNotFound, status: http.StatusNotFound, slug: "not-found", title: "Not found"},

		{err: order.ErrKeyMissing, status: http.StatusBadRequest, slug: "key-missing", title: "Idempotency-Key missing", detail: "Send the header Idempotency-Key with a value of your own, such as a UUID, one per purchase."},
		{err: errNoDelivery, status: http.StatusBadRequest, slug: "key-missing", title: "Idempotency-Key missing", detail: "Send the header Idempotency-Key with a value of your own, such as a delivery note's number, one per delivery."},
		{err: order.ErrKeyInvalid, status: http.StatusBadRequest, slug: "key-invalid", title: "Idempotency-Key invalid"},
		{err: order.ErrUnknownStrategy, status: http.StatusBadRequest, slug: "unknown-strategy", title: "Unknown strategy"},
		{err: order.ErrMissingStrategy, status: http.StatusBadRequest, slug: "missing-strategy", title: "Strategy not available"},
		{err: order.ErrInvalid, status: http.StatusUnprocessableEntity, slug: "invalid-order", title: "Invalid order"},
		{err: order.ErrBuyer, status: http.StatusUnprocessableEntity, slug: "invalid-order", title: "Invalid buyer"},
		{err: order.ErrTooManyOpen, status: http.StatusTooManyRequests, slug: "too-many-open", title: "Too many open orders", retrySafe: true, retryAfter: 1},
		{err: order.ErrPurchaseLimit, status: http.StatusConflict, slug: "purchase-limit", title: "Purchase limit reached"},
		{err: order.ErrKeyReused, status: http.StatusUnprocessableEntity, slug: "key-reused", title: "Idempotency-Key reused", detail: "This Idempotency-Key came with another request before. Use a new one for each request that is not a repeat."},
		{err: order.ErrInProgress, status: http.StatusConflict, slug: "in-progress", title: "Still in progress", detail: "The first request with this Idempotency-Key still runs. Send it again for its outcome.", retrySafe: true, retryAfter: 1},
		{err: order.ErrUnsettled, status: http.StatusServiceUnavailable, slug: "unknown-outcome", title: "Outcome unknown", detail: ask, retrySafe: true, retryAfter: 1},
		{err: order.ErrExpired, status: http.StatusConflict, slug: "order-expired", title: "Order has expired"},
		{err: order.ErrState, status: http.StatusConflict, slug: "order-ended", title: "Order has ended already"},
		{err: order.ErrNotFound, status: http.StatusNotFound, slug: "order-not-found", title: "Order not found"},

		{err: stock.ErrUnknownOutcome, status: http.StatusServiceUnavailable, slug: "unknown-outcome", title: "Outcome unknown", detail: look, retrySafe: true, retryAfter: 1},
		{err: stock.ErrKeyReused, status: http.StatusUnprocessableEntity, slug: "key-reused", title: "Idempotency-Key reused", detail: "This Idempotency-Key came with other units of this SKU before. Use a new one for each delivery."},
		{err: errNoSKU, status: http.StatusNotFound, slug: "sku-not-found", title: "SKU not found"},
		{err: stock.ErrUnknownSKU, status: http.StatusUnprocessableEntity, slug: "unknown-sku", title: "Unknown SKU"},
		{err: stock.ErrExists, status: http.StatusConflict, slug: "sku-exists", title: "SKU exists"},
		{err: stock.ErrInvalid, status: http.StatusUnprocessableEntity, slug: "invalid-sku", title: "Invalid SKU"},
		{err: stock.ErrStaleFence, status: http.StatusServiceUnavailable, slug: "lock-lost", title: "Lock lost", detail: again, retrySafe: true, retryAfter: 1},

		{err: order.ErrTooLate, status: http.StatusServiceUnavailable, slug: "too-late", title: "Lock about to end", detail: again, retrySafe: true, retryAfter: 1},
		{err: order.ErrBusy, status: http.StatusServiceUnavailable, slug: "busy", title: "Database busy", detail: again, retrySafe: true, retryAfter: 1},
		{err: stock.ErrBusy, status: http.StatusServiceUnavailable, slug: "busy", title: "Database busy", detail: again, retrySafe: true, retryAfter: 1},
		{err: lock.ErrQueueFull, status: http.StatusServiceUnavailable, slug: "queue-full", title: "Too many buyers wait", detail: again, retrySafe: true, retryAfter: 1},
		{err: lock.ErrClosed, status: http.StatusServiceUnavailable, slug: "shutting-down", title: "Shutting down", detail: again, retrySafe: true, retryAfter: 1},
		{err: lock.ErrNoAnswer, status: http.StatusServiceUnavailable, slug: "lock-no-answer", title: "Lock's store does not answer", detail: again, retrySafe: true, retryAfter: 1},
		{err: lock.ErrTimeout, status: http.StatusServiceUnavailable, slug: "lock-wait", title: "Waited too long", detail: again, retrySafe: true, retryAfter: 1},
		{err: lock.ErrNotAcquired, status: http.StatusServiceUnavailable, slug: "lock-unavailable", title: "Lock not available", detail: again, retrySafe: true, retryAfter: 1},
		{err: lock.ErrLost, status: http.StatusServiceUnavailable, slug: "lock-lost", title: "Lock lost", detail: again, retrySafe: true, retryAfter: 1},
		{err: lock.ErrReleased, status: http.StatusServiceUnavailable, slug: "lock-lost", title: "Lock lost", detail: again, retrySafe: true, retryAfter: 1},

		{err: context.DeadlineExceeded, status: http.StatusServiceUnavailable, slug: "interrupted", title: "Took too long", detail: unsure, retrySafe: true, retryAfter: 1},
		{err: context.Canceled, status: http.StatusServiceUnavailable, slug: "interrupted", title: "Interrupted", detail: unsure, retrySafe: true, retryAfter: 1},
	}
}

// find returns the first row that matches err, or the one for errors that nobody
// thought of.
func (t table) find(err error) row {
	for _, r := range t {
		if errors.Is(err, r.err) {
			return r
		}
	}
	return row{
		status:    http.StatusInternalServerError,
		slug:      "internal",
		title:     "Internal error",
		detail:    "Something went wrong that is not your fault. It was logged.",
		retrySafe: true,
	}
}
