package order

import "errors"

// What can become of an order besides being placed, together with the errors
// of packages stock (sold out, unknown SKU) and lock (not acquired, lost).
var (
	// ErrInvalid means that the request breaks a rule; nothing was changed.
	ErrInvalid = errors.New("invalid order")

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

	// ErrUnknownStrategy means that no strategy has this name.
	ErrUnknownStrategy = errors.New("unknown strategy")

	// ErrTooLate means that too little of the lease was left to start the
	// commit; nothing was changed, asking again is safe.
	ErrTooLate = errors.New("too little of the lease left to commit")

	// ErrUnknownOutcome means that the answer to a commit was lost. Asking again
	// with the same idempotency key is safe and tells.
	ErrUnknownOutcome = errors.New("outcome of the commit is unknown")

	// ErrBusy means that the database gave up waiting, kept choosing this
	// transaction as a deadlock's victim, or was lost before the commit; nothing
	// was changed.
	ErrBusy = errors.New("database is busy")
)
