package stockstore

import (
	"errors"
	"fmt"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// readError tells a database that is not there from other errors.
func readError(err error, what string) error {
	if store.Unavailable(err) {
		return fmt.Errorf("%w: read %s: %w", stock.ErrBusy, what, err)
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// changeError tells a database that is not there, and one whose answer to COMMIT
// was lost, from other errors.
func changeError(err error, what string) error {
	switch {
	case errors.Is(err, stock.ErrInvalid): // it says of what
		return err
	case errors.Is(err, store.ErrOutcomeUnknown):
		return fmt.Errorf("%w: %s: %w", stock.ErrUnknownOutcome, what, err)
	case errors.Is(err, store.ErrBusy):
		return fmt.Errorf("%w: %s: %w", stock.ErrBusy, what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
