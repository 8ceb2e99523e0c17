package lab

import (
	"context"
	"errors"
	"slices"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// HoldLock is what Offer.Lock has for a strategy whose orders hold their units until they are paid.
const HoldLock = "hold"

// latePayment sells, and has its buyers pay with a provider, whose word comes when the units may be another's already.
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
	workIn(ctx).of().asksFor([]string{d.ID}, s, HoldEnds)
	if s.guarded { // 3. the provider says that it is paid
		return s.move(ctx, d)
	}
	return s.overwrite(ctx, d)
}

// sweep expires orders of exactly these SKUs that are due.
func (s latePayment) sweep(ctx context.Context, d *order.Draft) error {
	due, err := s.Store.Due(ctx, order.Order{}, 100)
	if err != nil {
		return err
	}
	var endings []*order.Ending
	for _, o := range due {
		if slices.Equal(o.SKUs(), d.SKUs()) {
			endings = append(endings, &order.Ending{Order: o, As: order.Expired, NoWait: true})
		}
	}
	if len(endings) > 0 {
		s.orders.Ends.End(ctx, endings...)
	}
	for _, e := range endings {
		err = errors.Join(err, e.Err)
	}
	return err
}

// overwrite is WRONG: the money has arrived, so it marks the order as paid, whatever its state. An order that has expired is
// also marked as paid, though another buyer may have its units. And it leaves the units in reserved.
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

// move pays an order that is pending and not due, under the lock of its row. Otherwise order.ErrExpired tells the
// payment service to give the money back.
func (s latePayment) move(ctx context.Context, d *order.Draft) error {
	_, err := s.orders.Pay(ctx, order.EndRequest{Buyer: d.Buyer, OrderID: d.ID})
	return err
}

// Holder is not supported: a hold is no lock.
func (s latePayment) Holder(context.Context, string) (lock.Holder, error) {
	return lock.Holder{}, errors.ErrUnsupported
}

// ForceRelease makes a pending order due, or returns lock.ErrLost.
func (s latePayment) ForceRelease(ctx context.Context, id string) (lock.Holder, error) {
	return lock.Holder{}, s.Store.InTx(ctx, func(tx order.Tx) error {
		found, err := tx.LockOrders(id)
		if err != nil {
			return err
		}
		o := found[id].Order
		if o.Status != order.Pending {
			return lock.ErrLost
		}
		o.ExpiresAt = o.CreatedAt
		return tx.Extend(o)
	})
}
