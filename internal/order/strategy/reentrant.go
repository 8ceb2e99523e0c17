package strategy

import (
	"context"
	"crypto/rand"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Reentrant holds the locks of an order while it calls a function that takes the same locks again, as a helper does that
// locks to be sure. It is WRONG with a lock that its holder cannot take twice: the holder waits for itself.
type Reentrant struct {
	Shop
	Locker Locker
}

// Sell sells under locks that it takes twice, by the same Holder.
func (s Reentrant) Sell(ctx context.Context, d *order.Draft) error {
	ctx = context.WithValue(ctx, holderKey{}, rand.Text())
	leases, err := acquire(ctx, s.Locker, d) // 1. lock
	if err != nil {
		return err
	}
	defer func() { _ = leases.Release() }()                                    // 3. unlock
	return Locked{s.Shop, s.Locker, stock.Overwrite}.Sell(leases.Context(), d) // 2. lock again, sell and unlock
}

type holderKey struct{}

// Holder returns the name of the caller for locks that it may take more than once; empty if there is none.
func Holder(ctx context.Context) string {
	name, _ := ctx.Value(holderKey{}).(string)
	return name
}
