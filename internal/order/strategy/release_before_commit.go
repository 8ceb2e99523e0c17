package strategy

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// ReleaseBeforeCommit is WRONG: it has the right lock and releases it before the COMMIT, so that the next buyer reads
// stock that is about to change.
type ReleaseBeforeCommit struct {
	Shop
	Locker Locker
}

// Sell sells under the leases of the order's SKUs, and releases them before the COMMIT.
func (s ReleaseBeforeCommit) Sell(ctx context.Context, d *order.Draft) error {
	leases, err := acquire(ctx, s.Locker, d) // 1. lock
	if err != nil {
		return err
	}
	defer func() { _ = leases.Release() }() // if it sells nothing

	levels, err := s.read(ctx, d) // 2. read
	if err != nil {
		return err
	}
	if err := levels.Cover(d); err != nil { // 3. check
		return err
	}
	if err := think(ctx, d); err != nil {
		return err
	}
	return s.Store.InTx(ctx, func(tx order.Tx) error { // 6. COMMIT
		if err := s.claimTakeInsert(tx, stock.Overwrite, d, levels, nil); err != nil { // 4. UPDATE
			return err
		}
		if err := s.InTime(leases); err != nil {
			return err
		}
		_ = leases.Release() // 5. unlock. WRONG: nothing is committed yet
		return nil
	})
}
