package stock

import "errors"

var (
	// ErrSoldOut means that fewer units are available than were asked for.
	ErrSoldOut = errors.New("not enough units are available")

	// ErrStaleFence means that the stock row was already written under the same
	// or a higher fence: whoever asks may no longer hold the lease.
	ErrStaleFence = errors.New("stale fence")

	// ErrUnknownSKU means that no SKU has this name.
	ErrUnknownSKU = errors.New("unknown SKU")

	// ErrExists means that a SKU of this name is there already.
	ErrExists = errors.New("SKU exists already")

	// ErrBusy means that the database could not be read now; nothing was changed.
	ErrBusy = errors.New("stock cannot be read now")

	// ErrInvalid means that a name, price or count breaks a rule of this package.
	ErrInvalid = errors.New("invalid")
)
