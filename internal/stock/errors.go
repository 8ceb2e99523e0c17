package stock

import "errors"

var (
	// ErrSoldOut means that fewer units are available than were asked for.
	ErrSoldOut = errors.New("not enough units are available")

	// ErrStaleFence means that the stock row was already written under the same
	// or a higher fence: whoever asks may no longer hold the lease.
	ErrStaleFence = errors.New("stale fence")

	// ErrChanged means that the stock row is not what was read before: read again.
	ErrChanged = errors.New("the stock has changed since it was read")

	// ErrNotReserved means that fewer units are reserved than an order holds: the
	// level is wrong, as after a lost update. The audit tells more.
	ErrNotReserved = errors.New("fewer units are reserved than the order holds; run the audit")

	// ErrUnknownSKU means that no SKU has this name.
	ErrUnknownSKU = errors.New("unknown SKU")

	// ErrExists means that a SKU of this name is there already.
	ErrExists = errors.New("SKU exists already")

	// ErrBusy means that the database does not answer now; nothing was changed.
	ErrBusy = errors.New("stock does not answer now")

	// ErrUnknownOutcome means that a change was sent and its answer was lost: it
	// was made as a whole, or not at all.
	ErrUnknownOutcome = errors.New("it is not known whether stock was changed")

	// ErrKeyReused means that a delivery's key came with another number of units
	// before.
	ErrKeyReused = errors.New("this key came with another delivery of the SKU before")

	// ErrInvalid means that a name, price or count breaks a rule of this package.
	ErrInvalid = errors.New("invalid")
)
