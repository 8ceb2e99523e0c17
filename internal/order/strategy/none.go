package strategy

import (
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
	return s.Store.InTx(ctx, func(tx order.Tx) error { // 4. COMMIT, or ROLLBACK after an error
		// 3. UPDATE ... SET available = what was read, minus the units
		return s.claimTakeInsert(tx, stock.Overwrite, d, levels, nil)
	})
}
