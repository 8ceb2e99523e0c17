package strategy

import (
	"context"
	"errors"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// TryOnce asks for the lock once, as a scheduled job does to skip a run that another instance has begun. It is WRONG for
// buyers: a held lock does not mean that nothing is left, and a refused buyer, unlike a job, does not come again.
type TryOnce struct {
	Shop
	Locker Locker // that asks once
}

// Sell sells under the locks of the order's SKUs, with a guarded UPDATE, or refuses at once.
func (s TryOnce) Sell(ctx context.Context, d *order.Draft) error {
	err := Locked{s.Shop, s.Locker, stock.Conditional}.Sell(ctx, d)
	if errors.Is(err, lock.ErrTimeout) {
		return order.ErrSoldOut // WRONG: it is only busy
	}
	return err
}
