package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
)

// End implements order.Ender.
func (s *Seller) End(ctx context.Context, endings ...*order.Ending) {
	requests := make([]*request, len(endings))
	for i, e := range endings {
		ending := *e // the leader may still write to it when the caller has left
		r := newRequest(ctx, &ending.Order, e.Key, e.Fingerprint)
		r.ending = &ending
		if e.Payment.ID != "" {
			r.ids = append(r.ids, e.Payment.ID)
		}
		requests[i] = r
	}
	s.ending.join(requests...)
	for i, e := range endings {
		answered, err := s.await(requests[i])
		if answered {
			*e = *requests[i].ending
		} else {
			e.Moved = true // perhaps
		}
		e.Err = err
		if errors.Is(e.Err, lock.ErrNotAcquired) { // the end of an order asks for no lock
			e.Err = fmt.Errorf("%w: %s", order.ErrBusy, e.Err.Error())
		}
	}
}

// end ends, in one transaction, those orders of a batch that can end.
func (s *Seller) end(requests []*request) error {
	ctx, cancel := s.context(requests)
	defer cancel()
	_, err := s.inTx(ctx, requests, s.endOrders)
	return err
}

// endOrders is one attempt of the transaction.
func (s *Seller) endOrders(tx order.Tx, b *batch) error {
	orders, err := tx.LockOrders(order.Map(b.requests, func(r *request) string { return r.order.ID })...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool { return s.stays(r, orders) })
	if err := s.lockBuyers(tx, b); err != nil {
		return err
	}
	if err := b.claimKeys(tx); err != nil {
		return err
	}

	if err := s.recordPayments(tx, b); err != nil { // before the rows of SKUs: sales do not wait for a payment
		return err
	}
	moves := func(r *request) bool { return r.ending.Moved }
	if err := s.lockRows(tx, b, moves); err != nil {
		return err
	}
	b.takeReserved(moves)
	releases := func(r *request) bool { return moves(r) && r.ending.As != order.Paid }
	if err := s.lockBought(tx, b, new(order.Limits), releases); err != nil {
		return err
	}

	// The requests that are left end.
	if len(b.requests) == 0 {
		return order.ErrNothing
	}
	if err := b.undo(tx); err != nil {
		return err
	}
	moved := b.where(moves)
	ends := map[order.Status][]string{}
	for _, r := range moved.requests {
		ends[r.ending.As] = append(ends[r.ending.As], r.order.ID)
	}
	if err := tx.EndAll(ends); err != nil {
		return err
	}
	if err := tx.Move(moved.movements(time.Now().UTC())...); err != nil {
		return err
	}
	return tx.AddBought(b.levels.Limited(-1, b.where(releases).orders()...))
}

// stays reports whether the request stays in the batch: its order ends as requested, has already ended as requested, or
// refuses a payment, which is recorded. Otherwise stays sets the outcome of the request.
func (s *Seller) stays(r *request, orders map[string]order.Found) bool {
	e := r.ending
	found, exists := orders[e.Order.ID]
	if !exists || e.Order.Buyer != "" && e.Order.Buyer != found.Buyer {
		r.refusal = order.ErrNotFound
		return false
	}
	e.Order, e.Now = found.Order, found.Status
	if !found.Locked {
		if !r.noWait() {
			r.next = &s.behind
		}
		return false
	}
	if r.pays() {
		e.Payment.Refusal = found.Refusal(e.Payment.Amount)
	}
	if found.Status == order.Pending && found.Due == (e.As == order.Expired) && e.Payment.Refusal == "" {
		e.Now, e.Moved = e.As, true
	}
	return e.Now == e.As || r.pays()
}

// pays reports whether the request is a payment of the provider.
func (r *request) pays() bool { return r.ending.Payment.ID != "" }

// payment returns the payment that the request records; without an ID for none. If a buyer pays without a payment service,
// it is one of the shop's own, so that each paid order has a payment.
func (r *request) payment() order.Payment {
	switch e := r.ending; {
	case e == nil:
		return order.Payment{}
	case e.Payment.ID == "" && e.Moved && e.As == order.Paid:
		return e.Order.OwnPayment()
	default:
		return e.Payment
	}
}

// recordPayments records the payments of the batch. A payment that is already on record gets its first answer again.
func (s *Seller) recordPayments(tx order.Tx, b *batch) error {
	var payments []order.Payment
	for _, r := range b.requests {
		if p := r.payment(); p.ID != "" {
			payments = append(payments, p)
		}
	}
	known, others, err := tx.RecordPayments(payments...)
	for _, p := range payments {
		if _, repeated := known[p.ID]; !repeated && !slices.Contains(others, p.ID) {
			b.recorded = append(b.recorded, p.ID)
		}
	}
	b.keep(func(r *request) bool {
		e := r.ending
		before, repeated := known[e.Payment.ID]
		switch {
		case slices.Contains(others, r.payment().ID):
			r.next = &s.behind
		case !repeated:
		case before.OrderID == e.Payment.OrderID && before.Amount == e.Payment.Amount:
			e.Payment.Refusal, e.Payment.RefundedAt = before.Refusal, before.RefundedAt
			e.Moved, e.Now = false, e.Order.Status
		default:
			r.refusal = order.ErrPaymentReused
		}
		return r.refusal == nil && r.next == nil
	})
	return err
}

// takeReserved refuses the requests whose orders hold more units than are reserved.
func (b *batch) takeReserved(moves func(*request) bool) {
	b.keep(func(r *request) bool {
		if !moves(r) {
			return true
		}
		for _, line := range r.order.Lines {
			if b.levels.SKUs[line.SKU].Reserved < line.Units {
				r.refusal = fmt.Errorf("sku %q: %w", line.SKU, order.ErrNotReserved)
				return false
			}
		}
		b.move(r)
		return true
	})
}
