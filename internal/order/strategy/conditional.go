package strategy

import (
	"cmp"
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
	levels, err := s.read(ctx, d)
	if err != nil {
		return err
	}
	if err := think(ctx, d); err != nil {
		return err
	}
	return s.Store.InTx(ctx, d, func(tx order.Tx) error {
		return cmp.Or(
			s.lockBuyerAndClaimKey(tx, d),
			take(tx, stock.Conditional, d, levels, nil), // UPDATE ... WHERE available >= ?
			s.insert(tx, d, levels, nil),
		)
	})
}
