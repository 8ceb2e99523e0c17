package strategy

import (
	"context"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Locked is None under a lock without fences. With stock.Overwrite it is exactly as correct as its lock, which shows
// what goes wrong under the locks that are WRONG, each by one well-known mistake. With stock.Conditional the guarded
// UPDATE is what makes it correct, as under Redlock.
type Locked struct {
	Shop
	Locker Locker
	Take   stock.TakeMode
}

// Sell sells under the locks of the order's SKUs.
func (s Locked) Sell(ctx context.Context, d *order.Draft) error {
	leases, err := acquire(ctx, s.Locker, d) // 1. lock
	if err != nil {
		return err
	}
	defer func() { _ = leases.Release() }() // 6. unlock, after the COMMIT
	ctx = leases.Context()

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
	return s.Store.InTx(ctx, func(tx order.Tx) error { // 5. COMMIT
		if err := s.claimTakeInsert(tx, s.Take, d, levels, nil); err != nil { // 4. UPDATE
			return err
		}
		return s.InTime(leases)
	})
}
