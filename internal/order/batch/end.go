package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// End implements order.Ender.
func (s *Seller) End(ctx context.Context, endings ...*order.Ending) {
	requests := make([]*request, len(endings))
	for i, e := range endings {
		requests[i] = &request{ctx: ctx, ending: e, answer: make(chan error, 1)}
	}
	err := s.ending.join(requests...)
	if err == nil {
		s.OnWait(ctx)
	}
	for i, r := range requests {
		e := endings[i]
		if e.Err = err; err == nil {
			e.Err = s.await(r)
		}
		if errors.Is(e.Err, lock.ErrNotAcquired) { // no lock is asked for
			e.Err = fmt.Errorf("%w: %s", order.ErrBusy, e.Err.Error())
		}
	}
}

// end decides which orders of a batch end, and ends them in one transaction. Its error is the outcome of those that were
// to be ended.
func (s *Seller) end(requests []*request) error {
	ctx, cancel := s.context(requests)
	defer cancel()
	if err := s.readOrders(ctx, requests); err != nil {
		return err
	}
	found := slices.DeleteFunc(slices.Clone(requests), func(r *request) bool { return r.refusal != nil })
	if len(found) == 0 {
		return nil
	}
	_, err := s.inTx(ctx, found, s.endOrders)
	return err
}

// readOrders reads the orders that are not known yet. What was written with an order never changes, but for its status.
func (s *Seller) readOrders(ctx context.Context, requests []*request) error {
	unread := map[string]*request{}
	for _, r := range requests {
		if len(r.ending.Order.Lines) == 0 {
			unread[r.ending.Order.ID], r.refusal = r, order.ErrNotFound
		}
	}
	if len(unread) == 0 {
		return nil
	}
	orders, err := s.Store.Orders(ctx, slices.Sorted(maps.Keys(unread))...)
	for _, o := range orders {
		if r := unread[o.ID]; o.Buyer == r.ending.Order.Buyer {
			r.ending.Order, r.refusal = o, nil
		}
	}
	return err
}

// endOrders is one attempt of the transaction.
func (s *Seller) endOrders(tx order.Tx, b *batch) error {
	states, err := tx.LockOrders(each(b, func(r *request) string { return r.ending.Order.ID })...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool { return s.canEnd(r, states) })
	// As in place, no other transaction claims keys of these buyers: an INSERT of a key would wait for it.
	locked, err := tx.LockBuyers(b.keyed()...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		if r.ending.Key != "" && slices.Contains(locked, r.ending.Order.Buyer) {
			r.next, r.ending.Moved = &s.behind, false
		}
		return r.next == nil
	})
	taken, err := tx.ClaimEnds(each(b, func(r *request) *order.Ending { return r.ending })...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		if claim, known := taken[r.key()]; known {
			r.claim, r.ending.Moved = &claim, false
		}
		return r.claim == nil
	})
	claimed := b.keys()

	levels, err := tx.TryLevels(b.moved().skus(), s.Patience)
	if err != nil {
		return err
	}
	reserved := map[string]int64{}
	for _, sku := range levels.SKUs {
		reserved[sku.Name] = sku.Level.Reserved
	}
	b.keep(func(r *request) bool {
		ends := !r.ending.Moved || s.hasRows(r, b, levels) && canSettle(r, reserved)
		r.ending.Moved = r.ending.Moved && ends
		return ends
	})

	// What is left of the batch ends.
	if len(b.orders) == 0 {
		return errNothing
	}
	if err := tx.FreeKeys(b.without(claimed)...); err != nil {
		return err
	}
	moved := b.moved()
	for _, as := range []order.Status{order.Paid, order.Cancelled, order.Expired} {
		if err := tx.MoveAll(as, moved.idsTo(as)...); err != nil {
			return err
		}
	}
	if err := tx.SettleAll(moved.settles()...); err != nil {
		return err
	}
	if err := tx.AddBought(levels.Limited(-1, moved.released()...)); err != nil {
		return err
	}
	return tx.Record(moved.ends()...)
}

// canEnd reports whether the order ends as requested, or has so before. The outcome of all others is in the Ending.
func (s *Seller) canEnd(r *request, states map[string]order.State) bool {
	e := r.ending
	state, unlocked := states[e.Order.ID]
	switch {
	case !unlocked && e.NoWait:
		e.Now = order.Pending
		return false
	case !unlocked:
		r.next = &s.behind
		return false
	}
	e.Now = state.Status
	if state.Status == order.Pending && state.Due == (e.As == order.Expired) {
		e.Now, e.Moved = e.As, true
	}
	return e.Now == e.As
}

// canSettle reports whether the units of an order that ends are reserved, and takes them from those of the orders behind
// it.
func canSettle(r *request, reserved map[string]int64) bool {
	lines := r.ending.Order.Lines
	for _, line := range lines {
		if reserved[line.SKU] < line.Units {
			r.refusal = fmt.Errorf("sku %q: %w", line.SKU, order.ErrNotReserved)
			return false
		}
	}
	for _, line := range lines {
		reserved[line.SKU] -= line.Units
	}
	return true
}

// keyed returns the buyers whose requests have keys.
func (b *batch) keyed() (buyers []string) {
	for _, r := range b.orders {
		if r.ending.Key != "" {
			buyers = append(buyers, r.ending.Order.Buyer)
		}
	}
	return buyers
}

// moved returns the orders of a batch that it ends; the others have ended in the same way before.
func (b *batch) moved() *batch {
	moved := &batch{orders: slices.Clone(b.orders)}
	moved.keep(func(r *request) bool { return r.ending.Moved })
	return moved
}

func (b *batch) idsTo(as order.Status) (ids []string) {
	for _, r := range b.orders {
		if r.ending.As == as {
			ids = append(ids, r.ending.Order.ID)
		}
	}
	return ids
}

// released returns the orders whose units become available again.
func (b *batch) released() (all []order.Order) {
	for _, r := range b.orders {
		if r.ending.As != order.Paid {
			all = append(all, r.ending.Order)
		}
	}
	return all
}

// settles adds up the units of each SKU that leave reserved.
func (b *batch) settles() []stock.Settle {
	sold := map[string]int64{}
	for _, r := range b.orders {
		for _, line := range r.ending.Order.Lines {
			if r.ending.As == order.Paid {
				sold[line.SKU] += line.Units
			}
		}
	}
	units := b.units()
	settles := make([]stock.Settle, 0, len(units))
	for _, sku := range b.skus() {
		settles = append(settles, stock.Settle{SKU: sku, Sold: sold[sku], Released: units[sku] - sold[sku]})
	}
	return settles
}

func (b *batch) ends() (all []stock.Movement) {
	now := time.Now().UTC()
	for _, r := range b.orders {
		kind := stock.Release
		if r.ending.As == order.Paid {
			kind = stock.Sell
		}
		all = append(all, r.ending.Order.Movements(kind, nil, now)...)
	}
	return all
}
