package stockstore

import (
	"errors"
	"fmt"
	"testing"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// What store.InTx says of a change, as the callers of this package know it.
func TestChangeError(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]error{
		store.ErrBusy:           stock.ErrBusy,
		store.ErrOutcomeUnknown: stock.ErrUnknownOutcome,
		stock.ErrUnknownSKU:     stock.ErrUnknownSKU,
	} {
		if got := changeError(fmt.Errorf("commit: %w", cause), "supply"); !errors.Is(got, want) || !errors.Is(got, cause) {
			t.Errorf("%v: got %v, want %v with the cause", cause, got, want)
		}
	}
}
