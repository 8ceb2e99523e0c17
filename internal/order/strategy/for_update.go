package strategy

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// ForUpdate is None corrected by the database's row lock: from SELECT ... FOR UPDATE until the transaction ends, no
// other buyer locks or writes the row. Each buyer keeps a connection and the row while it thinks.
type ForUpdate struct {
	Shop
}

// Sell reads, thinks and writes in one transaction.
func (s ForUpdate) Sell(ctx context.Context, d *order.Draft) error {
	return s.Store.InTx(ctx, func(tx order.Tx) error { // 5. COMMIT, which unlocks
		if err := s.lockBuyerAndClaimKey(tx, d); err != nil {
			return err
		}
		levels, err := tx.LockLevels(d.SKUs()) // 1. lock and 2. read
		if err != nil {
			return err
		}
		if err := d.Price(levels); err != nil {
			return err
		}
		if err := levels.Cover(d); err != nil { // 3. check
			return err
		}
		if err := think(ctx, d); err != nil {
			return err
		}
		// 4. UPDATE ... SET available = what was read, minus the units
		if err := take(tx, stock.Overwrite, d, levels, nil); err != nil {
			return err
		}
		return s.insert(tx, d, levels, nil)
	})
}
