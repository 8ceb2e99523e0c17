package strategy

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Conditional has no lock: the database compares and subtracts in one statement, and every buyer waits for the row.
type Conditional struct {
	Shop
}

// Sell lets the UPDATE decide whether there are units. It reads the levels for their prices.
func (s Conditional) Sell(ctx context.Context, d *order.Draft) error {
	return s.sellIf(ctx, d, func() error { return nil })
}

// sellIf is Sell, and rolls back if the last check before the COMMIT returns an error.
func (s Conditional) sellIf(ctx context.Context, d *order.Draft, last func() error) error {
	levels, err := s.read(ctx, d)
	if err != nil {
		return err
	}
	if err := think(ctx, d); err != nil {
		return err
	}
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		// UPDATE ... WHERE available >= ?
		if err := s.claimTakeInsert(tx, stock.Conditional, d, levels, nil); err != nil {
			return err
		}
		return last()
	})
}
