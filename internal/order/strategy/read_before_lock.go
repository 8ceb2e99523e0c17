package strategy

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// ReadBeforeLock is WRONG: it has the right lock, but has read the stock before it asked for it. While it waited,
// another buyer may have sold what it read.
type ReadBeforeLock struct {
	Shop
	Locker Locker
}

// Sell writes under the leases of the order's SKUs what it computed from an earlier read.
func (s ReadBeforeLock) Sell(ctx context.Context, d *order.Draft) error {
	levels, err := s.read(ctx, d) // 1. read. WRONG: another buyer can write until 3.
	if err != nil {
		return err
	}
	if err := levels.Cover(d); err != nil { // 2. check
		return err
	}
	leases, err := acquire(ctx, s.Locker, d) // 3. lock
	if err != nil {
		return err
	}
	defer func() { _ = leases.Release() }() // 6. unlock, after the COMMIT
	ctx = leases.Context()

	if err := think(ctx, d); err != nil {
		return err
	}
	return s.Store.InTx(ctx, func(tx order.Tx) error { // 5. COMMIT
		if err := s.claimTakeInsert(tx, stock.Overwrite, d, levels, nil); err != nil { // 4. UPDATE
			return err
		}
		return s.InTime(leases)
	})
}
