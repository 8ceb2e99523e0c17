package order

import "errors"

// What can become of an order besides being placed, together with the errors
// of packages stock (sold out, unknown SKU) and lock (not acquired, lost).
var (
	// ErrInvalid means that the request breaks a rule; nothing was changed.
	ErrInvalid = errors.New("invalid order")

	// ErrBuyer means that this cannot be a buyer's name; nothing was changed.
	ErrBuyer = errors.New("invalid buyer")

	// ErrKeyMissing means that the request has no idempotency key.
	ErrKeyMissing = errors.New("idempotency key is missing")

	// ErrKeyInvalid means that the idempotency key is too long or not printable.
	ErrKeyInvalid = errors.New("idempotency key is invalid")

	// ErrKeyReused means that the key came with another request before.
	ErrKeyReused = errors.New("idempotency key was used for another request")

	// ErrKeyTaken is for Store implementations: the key's row is there already.
	// The Service turns it into a replay or ErrKeyReused.
	ErrKeyTaken = errors.New("idempotency key is taken")

	// ErrInProgress means that the first request with this key still runs.
	ErrInProgress = errors.New("a request with this idempotency key is still running")

	// ErrNotFound means that the buyer has no such order.
	ErrNotFound = errors.New("order not found")

	// ErrState means that the order has ended in another way already. The error
	// is a *StateError, which tells how.
	ErrState = errors.New("the order has ended already")

	// ErrExpired is the ErrState of an order that was not paid in time.
	ErrExpired = errors.New("the order has expired")

	// ErrUnsettled means that the answer to the commit of a payment or a
	// cancellation was lost, and could not be asked for. Asking again is safe and
	// tells.
	ErrUnsettled = errors.New("it is unknown whether the order was changed")

	// ErrTooManyOpen means that the buyer has as many pending orders as are allowed.
	// The error is an *OpenError, which tells when there may be room.
	ErrTooManyOpen = errors.New("too many open orders")

	// ErrPurchaseLimit means that the buyer would have more units of a SKU than its
	// LimitPerBuyer, in orders that are pending or paid.
	ErrPurchaseLimit = errors.New("more units than a buyer may have")

	// ErrUnknownStrategy means that no strategy has this name.
	ErrUnknownStrategy = errors.New("unknown strategy")

	// ErrMissingStrategy means that this shop lacks what the strategy needs.
	ErrMissingStrategy = errors.New("this shop cannot sell that way")

	// ErrTooLate means that too little of the lease was left to start the
	// commit; nothing was changed, asking again is safe.
	ErrTooLate = errors.New("too little of the lease left to commit")

	// ErrUnknownOutcome means that the answer to a commit was lost, and could not
	// be asked for. Asking again with the same idempotency key is safe and tells.
	ErrUnknownOutcome = errors.New("outcome of the commit is unknown")

	// ErrBusy means that the database gave up waiting, kept choosing this
	// transaction as a deadlock's victim, or was lost before the commit, also of
	// several tries; nothing was changed.
	ErrBusy = errors.New("database is busy")
)
