package order

import (
	"errors"
	"fmt"
	"time"
)

// Error is a refusal or a failure that a caller can act on. errors.Is compares codes, so that each variable below
// matches all errors with its code. Unless the text says otherwise, nothing was changed.
type Error struct {
	Code string
	Text string

	Status Status        // of the order, if it does not end as requested
	Wait   time.Duration // with ErrTooManyOpen: until the first pending order expires
	Refund bool          // the payment must be refunded
}

func (e *Error) Error() string { return e.Text }

// Is compares codes.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// with returns an error with the same code, and adds details to its text.
func (e *Error) with(format string, args ...any) *Error {
	return &Error{Code: e.Code, Text: e.Text + ": " + fmt.Sprintf(format, args...)}
}

// Code returns the code of the Error in err, or "" if there is none.
func Code(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Errors of a request.
var (
	ErrInvalid    = &Error{Code: "invalid-order", Text: "invalid order"}
	ErrBuyer      = &Error{Code: "invalid-buyer", Text: "invalid buyer"}
	ErrKeyMissing = &Error{Code: "key-missing", Text: "idempotency key is missing"}
	ErrKeyInvalid = &Error{Code: "key-invalid", Text: "idempotency key is invalid"}
	ErrKeyReused  = &Error{Code: "key-reused", Text: "idempotency key was used for another request"}
	ErrUnknownSKU = &Error{Code: "unknown-sku", Text: "unknown SKU"}
)

// Reasons why an order is not placed or does not end as requested.
var (
	ErrSoldOut       = &Error{Code: "sold-out", Text: "not enough units are available"}
	ErrTooManyOpen   = &Error{Code: "too-many-open", Text: "too many open orders"}
	ErrPurchaseLimit = &Error{Code: "purchase-limit", Text: "more units than a buyer may have"}
	ErrNotFound      = &Error{Code: "order-not-found", Text: "order not found"}
	ErrExpired       = &Error{Code: "order-expired", Text: "the order has expired"}
	ErrState         = &Error{Code: "order-ended", Text: "the order has ended already"}
)

// Transient errors: repeating the request with the same key is safe.
var (
	ErrTooLate = &Error{Code: "too-late", Text: "too little of the lease left to commit"}
	ErrChanged = &Error{Code: "changed", Text: "the stock has changed since it was read"}

	// ErrBusy means that the database cannot execute the request now, as after a lock wait, deadlocks or a lost
	// connection.
	ErrBusy = &Error{Code: "busy", Text: "database is busy"}

	// ErrLocked is an ErrBusy: another transaction has locked a row, or the gap for a new row.
	ErrLocked = fmt.Errorf("%w: another transaction has locked a row", ErrBusy)

	// ErrStaleFence means that the row has the same or a higher fence: the caller may have lost the lease.
	ErrStaleFence = &Error{Code: "stale-fence", Text: "stale fence"}

	// ErrUnknownOutcome means that the answer to a COMMIT was lost: the change was made in full or not at all.
	// Repeating the request returns the outcome.
	ErrUnknownOutcome = &Error{Code: "unknown-outcome", Text: "outcome of the commit is unknown"}
)

// Errors of a Store and of the operator's calls.
var (
	ErrExists  = &Error{Code: "sku-exists", Text: "SKU exists already"}
	ErrNothing = errors.New("nothing to commit") // rolls back a transaction

	// ErrKeyTaken means that the row of an idempotency key exists. The answer is then a replay or ErrKeyReused.
	ErrKeyTaken = &Error{Code: "key-taken", Text: "idempotency key is taken"}

	// ErrNotReserved means that fewer units are reserved than an order holds: the level is wrong, as after a lost update.
	ErrNotReserved = &Error{Code: "not-reserved", Text: "fewer units are reserved than the order holds; run the audit"}
)
