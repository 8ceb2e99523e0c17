package lab

import (
	"context"
	"errors"
	"slices"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// latePayment sells to buyers who pay with a provider. The provider's message may come when the units
// are another buyer's.
type latePayment struct {
	strategy.Shop
	orders  *order.Service
	db      *store.Store
	guarded bool
}

// Sell ends the holds that have run out, places the order, and has it paid.
func (s latePayment) Sell(ctx context.Context, d *order.Draft) error {
	if err := s.sweep(ctx, d); err != nil { // 1. their units are for sale again
		return err
	}
	if err := (strategy.Conditional{Shop: s.Shop}).Sell(ctx, d); err != nil { // 2. it holds its units for a while
		return err
	}
	paying := workIn(ctx).of
	paying.add(KindStep, stepHolds, "")
	paying.asksFor(asked{event: HoldEnds, end: func(ctx context.Context) (bool, error) { return s.makeDue(ctx, d.ID) }})
	if !s.guarded { // 3. the provider says that it is paid
		return s.overwrite(ctx, d)
	}
	// An order that is pending and not due becomes paid, under the lock of its row. Otherwise the error is
	// order.ErrExpired, and the payment service refunds the payment.
	_, err := s.orders.Pay(ctx, order.EndRequest{Buyer: d.Buyer, OrderID: d.ID})
	return err
}

// sweep expires orders of exactly these SKUs that are due.
func (s latePayment) sweep(ctx context.Context, d *order.Draft) error {
	due, err := s.Store.Due(ctx, order.Order{}, 100)
	if err != nil {
		return err
	}
	for _, o := range due {
		if slices.Equal(o.SKUs(), d.SKUs()) {
			ended := s.orders.Ends.End(ctx, order.Ending{OrderID: o.ID, As: order.Expired, NoWait: true})
			err = errors.Join(err, ended[0].Err)
		}
	}
	return err
}

// overwrite is WRONG: the money has arrived, so it marks the order as paid, whatever its state. An order that has
// expired is also marked as paid, though another buyer may have its units. And it leaves the units in reserved.
func (s latePayment) overwrite(ctx context.Context, d *order.Draft) error {
	tx, err := s.db.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'paid' WHERE id = ?", d.ID); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// makeDue makes an order due, if it is pending.
func (s latePayment) makeDue(ctx context.Context, id string) (pending bool, err error) {
	err = s.Store.InTx(ctx, func(tx order.Tx) error {
		found, err := tx.LockOrders(id)
		o := found[id].Order
		if pending = o.Status == order.Pending; !pending {
			return err
		}
		o.ExpiresAt = o.CreatedAt
		return tx.Extend(o)
	})
	return pending, err
}
