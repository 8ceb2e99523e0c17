package designs

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/loadtest/shops"
)

// ours is a strategy of this shop, wired as internal/app does, and called without HTTP. It also writes the ledger and
// the idempotency keys, and locks the rows of the buyers.
//
// The cost: docs/architecture.md, "A batch".
func ours(name string) Design {
	leases := map[string]string{"lanes": "the instances queue for leases in Redis", "batch": "without leases"}[name]
	return Design{
		Name:  name,
		About: "This shop: all orders that wait, of any SKUs, in one transaction; " + leases + ".",
		Carts: true,
		Open: func(_ context.Context, on Servers) Seller {
			var started shops.Undo
			config := batch.Config{Shop: strategy.Shop{Store: on.Store.Sharing()}}
			if name == "lanes" {
				locker := lock.New(lock.NewRedis(on.Redis), lock.Options{})
				started.Later(locker.Close)
				config.Locker = strategy.LockerOf(locker)
				config.CommitTime = time.Second // a tenth of the lease's TTL
			}
			seller := batch.New(config)
			started.Later(func() error { seller.Close(); return nil })
			orders := order.New(order.Config{Store: on.Store, Strategy: seller, Ends: seller})
			buy := func(ctx context.Context, o Order) error {
				lines := order.Map(o.SKUs, func(sku string) order.Line { return order.Line{SKU: sku, Units: 1} })
				_, _, err := orders.Place(ctx, order.Request{Buyer: o.Buyer, Key: o.ID, Lines: lines})
				if errors.Is(err, order.ErrSoldOut) {
					return errSoldOut
				}
				return err
			}
			return Seller{buy, started.Close}
		},
	}
}
