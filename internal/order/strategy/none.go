package strategy

import (
	"cmp"
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// None is WRONG: read, think, write. All buyers that read before the first write are sold the same units.
type None struct {
	Shop
}

// Sell sells without a lock, and writes back what it read minus the units.
func (s None) Sell(ctx context.Context, d *order.Draft) error {
	levels, err := s.read(ctx, d) // 1. read
	if err != nil {
		return err
	}
	if err := levels.Cover(d); err != nil { // 2. check
		return err
	}
	if err := think(ctx, d); err != nil {
		return err
	}
	return s.Store.InTx(ctx, d, func(tx order.Tx) error { // 4. COMMIT, if all of this went well:
		return cmp.Or( // behind a failure, tx does nothing more and returns its error
			s.lockBuyerAndClaimKey(tx, d),
			take(tx, stock.Overwrite, d, levels, nil), // 3. UPDATE ... SET available = what was read, minus the units
			s.insert(tx, d, levels, nil),
		)
	})
}
