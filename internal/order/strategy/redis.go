package strategy

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Redis lets one buyer at a time sell, under a lease; the fenced UPDATE is what cannot oversell. The same code sells
// under leases of MySQL and ZooKeeper.
type Redis struct {
	Shop
	Locker Locker
}

// Sell sells under the leases of the order's SKUs.
func (s Redis) Sell(ctx context.Context, d *order.Draft) error {
	leases, err := acquire(ctx, s.Locker, d) // 1. lock
	if err != nil {
		return err
	}
	defer func() { _ = leases.Release() }() // 6. unlock, after the COMMIT
	ctx = leases.Context()                  // ends with the leases

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
	// It sells once more with a higher fence if the lock's store has lost its fences.
	return s.raisingFence(ctx, d, leases, func() error {
		return s.Store.InTx(ctx, func(tx order.Tx) error { // 5. COMMIT, or ROLLBACK after an error
			// 4. UPDATE ... WHERE available >= ? AND fence < ?
			if err := s.claimTakeInsert(tx, stock.Fenced, d, levels, leases); err != nil {
				return err
			}
			return s.InTime(leases)
		})
	})
}
