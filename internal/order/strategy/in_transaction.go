package strategy

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// InTransaction is None in one transaction. At REPEATABLE READ, as MySQL has it by default, it is WRONG: a transaction reads
// from its own snapshot, and writes over what others have committed since. (MariaDB from 11.6.2 on refuses instead.) At
// SERIALIZABLE it is right: a row that was read stays as it is until the transaction ends. Of two buyers who have read it, the
// database ends one by a deadlock.
type InTransaction struct {
	Shop
}

// Sell reads, thinks and writes in one transaction. After a deadlock InTx runs it again.
func (s InTransaction) Sell(ctx context.Context, d *order.Draft) error {
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		if err := s.lockBuyerAndClaimKey(tx, d); err != nil {
			return err
		}
		levels, err := tx.Levels(d.SKUs()) // 1. read: a plain SELECT
		if err != nil {
			return err
		}
		if err := d.Price(levels); err != nil {
			return err
		}
		if err := levels.Cover(d); err != nil { // 2. check
			return err
		}
		if err := think(ctx, d); err != nil {
			return err
		}
		// 3. UPDATE ... SET available = what was read, minus the units
		if err := take(tx, stock.Overwrite, d, levels, nil); err != nil {
			return err
		}
		return s.insert(tx, d, levels, nil)
	})
}
