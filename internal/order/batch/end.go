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
		requests[i] = newEnding(ctx, e)
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
	var known []*request
	lines := 0
	for _, r := range requests {
		switch {
		case r.refusal != nil:
		case lines >= maxLines: // more than was thought
			r.next = &s.ending
		default:
			known = append(known, r)
			lines += len(r.order.Lines)
		}
	}
	if len(known) == 0 {
		return nil
	}
	_, err := s.inTx(ctx, known, s.endOrders)
	return err
}

// readOrders reads the orders that are not known yet. What was written with an order never changes, but for its status.
func (s *Seller) readOrders(ctx context.Context, requests []*request) error {
	unread := map[string]*request{}
	for _, r := range requests {
		if len(r.ending.Order.Lines) == 0 {
			unread[r.ending.Order.ID] = r
		}
	}
	if len(unread) == 0 {
		return nil
	}
	orders, err := s.Store.Orders(ctx, slices.Sorted(maps.Keys(unread))...)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if r := unread[o.ID]; o.Buyer == r.ending.Order.Buyer {
			r.ending.Order = o
			delete(unread, o.ID)
		}
	}
	for _, r := range unread {
		r.refusal = order.ErrNotFound
	}
	return nil
}

// endOrders is one attempt of the transaction.
func (s *Seller) endOrders(tx order.Tx, b *batch) error {
	states, err := tx.LockOrders(b.ids()...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool { return s.canEnd(r, states) })
	// As in place, no other transaction claims keys of these buyers: an INSERT of a key would wait for it.
	keyed := b.where(func(r *request) bool { return r.key.Key != "" })
	locked, err := tx.LockBuyers(keyed.buyers()...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		if r.key.Key != "" && slices.Contains(locked, r.key.Buyer) {
			r.next, r.ending.Moved = &s.behind, false
		}
		return r.next == nil
	})
	taken, err := tx.ClaimEnds(each(b, func(r *request) *order.Ending { return r.ending })...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		if claim, known := taken[r.key]; known {
			r.claim, r.ending.Moved = &claim, false
		}
		return r.claim == nil
	})
	claimed := b.keys()

	moves := func(r *request) bool { return r.ending.Moved }
	levels, err := tx.TryLevels(b.where(moves).skus(), s.Patience)
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
	if len(b.requests) == 0 {
		return errNothing
	}
	if err := tx.FreeKeys(b.dropped(claimed)...); err != nil {
		return err
	}
	moved := b.where(moves)
	for _, as := range []order.Status{order.Paid, order.Cancelled, order.Expired} {
		ending := moved.where(func(r *request) bool { return r.ending.As == as })
		if err := tx.MoveAll(as, ending.ids()...); err != nil {
			return err
		}
	}
	if err := tx.SettleAll(moved.settles()...); err != nil {
		return err
	}
	released := moved.where(func(r *request) bool { return r.ending.As != order.Paid })
	if err := tx.AddBought(levels.Limited(-1, released.orders()...)); err != nil {
		return err
	}
	return tx.Record(moved.ends()...)
}

// canEnd reports whether the order ends as requested, or already has. The outcome of all others is in the Ending.
func (s *Seller) canEnd(r *request, states map[string]order.State) bool {
	e := r.ending
	state, locked := states[e.Order.ID] // by this transaction
	switch {
	case !locked && e.NoWait:
		e.Now = order.Pending
		return false
	case !locked:
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

// settles adds up the units of each SKU that leave reserved.
func (b *batch) settles() []stock.Settle {
	sold := map[string]int64{}
	for _, r := range b.requests {
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
	for _, r := range b.requests {
		kind := stock.Release
		if r.ending.As == order.Paid {
			kind = stock.Sell
		}
		all = append(all, r.ending.Order.Movements(kind, nil, now)...)
	}
	return all
}
