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
func (s *Seller) End(ctx context.Context, endings ...order.Ending) []order.Outcome {
	requests := make([]*request, len(endings))
	for i, e := range endings {
		r := newRequest(ctx, order.Draft{Order: order.Order{ID: e.OrderID, Buyer: e.Buyer}, Fingerprint: e.Fingerprint}, e.Key)
		r.ending = &e
		if e.Payment.ID != "" {
			r.ids = append(r.ids, e.Payment.ID)
		}
		requests[i] = r
	}
	s.ending.join(requests...)
	outcomes := make([]order.Outcome, len(endings))
	for i, r := range requests {
		a := s.await(r)
		outcomes[i] = a.outcome
		outcomes[i].Err = a.err
		if errors.Is(a.err, lock.ErrNotAcquired) { // the end of an order asks for no lock
			outcomes[i].Err = fmt.Errorf("%w: %s", order.ErrBusy, a.err.Error())
		}
	}
	return outcomes
}

// end ends, in one transaction, those orders of a batch that can end.
func (s *Seller) end(requests []*request) {
	s.serve(requests, func() (*batch, error) {
		ctx, cancel := s.context(requests)
		defer cancel()
		return s.inTx(ctx, requests, s.endOrders)
	})
}

// endOrders is one attempt of the transaction.
func (s *Seller) endOrders(tx order.Tx, b *batch) error {
	var ids []string
	for _, r := range b.requests {
		ids = append(ids, r.draft.ID)
	}
	found, err := tx.LockOrders(ids...)
	if err != nil {
		return err
	}
	b.decide(func(r *request) decision {
		if o, exists := found[r.draft.ID]; exists {
			return s.decideEnd(b, r, o)
		}
		return decision{refused: order.ErrNotFound}
	})
	if err := s.lockBuyers(tx, b); err != nil {
		return err
	}
	if err := b.claimKeys(tx); err != nil {
		return err
	}

	recorded, err := s.recordPayments(tx, b) // before the rows of SKUs: sales do not wait for a payment
	if err != nil {
		return err
	}
	if err := s.lockRows(tx, b); err != nil {
		return err
	}
	b.decide(b.leaveReserved)
	if _, err := s.lockBought(tx, b); err != nil {
		return err
	}

	// The requests that are left end.
	if len(b.requests) == 0 {
		return order.ErrNothing
	}
	if err := b.freeKeys(tx); err != nil {
		return err
	}
	if err := b.forgetPayments(tx, recorded); err != nil {
		return err
	}
	ends := map[order.Status][]string{}
	for _, r := range b.requests {
		if b.outcomes[r].First {
			ends[r.ending.As] = append(ends[r.ending.As], r.draft.ID)
		}
	}
	if err := tx.EndAll(ends); err != nil {
		return err
	}
	if err := tx.Move(b.movements(nil, time.Now().UTC())...); err != nil {
		return err
	}
	return tx.AddBought(b.levels.Limited(-1, b.counted()...))
}

// decideEnd decides by the locked order whether it ends. The request stays in the batch if the order ends, has already
// ended as requested, or refuses a payment, which is recorded.
func (s *Seller) decideEnd(b *batch, r *request, found order.Found) decision {
	asked := r.ending
	if asked.Buyer != "" && asked.Buyer != found.Buyer {
		return decision{refused: order.ErrNotFound}
	}
	r.draft.Order = found.Order
	outcome := &order.Outcome{Order: found.Order, Due: found.Status == order.Pending && found.Due, Payment: asked.Payment}
	b.outcomes[r] = outcome
	switch {
	case !found.Locked && asked.NoWait:
		return decision{unchanged: true}
	case !found.Locked:
		return decision{waits: &s.behind}
	}
	if r.pays() {
		outcome.Payment.Refusal = found.Refusal(asked.Payment.Amount)
	}
	if found.Status == order.Pending && found.Due == (asked.As == order.Expired) && outcome.Payment.Refusal == "" {
		outcome.First, outcome.Due, outcome.Order.Status = true, false, asked.As
	}
	if outcome.Order.Status != asked.As && !r.pays() {
		return decision{unchanged: true}
	}
	return decision{}
}

// pays reports whether the request is a payment of the provider.
func (r *request) pays() bool { return r.ending.Payment.ID != "" }

// payment returns the payment that the request records; without an ID for none. If a buyer pays without a payment
// service, it is one of the shop's own, so that each paid order has a payment.
func (b *batch) payment(r *request) order.Payment {
	if outcome := b.outcomes[r]; !r.pays() && outcome.First && r.ending.As == order.Paid {
		return outcome.Order.OwnPayment()
	}
	return b.outcomes[r].Payment
}

// recordPayments records the payments of the batch, and returns the ids of the new ones. A payment that is already on
// record gets its first answer again.
func (s *Seller) recordPayments(tx order.Tx, b *batch) (recorded map[*request]string, err error) {
	var payments []order.Payment
	for _, r := range b.requests {
		if p := b.payment(r); p.ID != "" {
			payments = append(payments, p)
		}
	}
	known, others, err := tx.RecordPayments(payments...)
	if err != nil {
		return nil, err
	}
	recorded = map[*request]string{}
	b.decide(func(r *request) decision {
		p, outcome := b.payment(r), b.outcomes[r]
		before, repeated := known[p.ID]
		switch {
		case p.ID == "":
		case slices.Contains(others, p.ID):
			return decision{waits: &s.behind}
		case !repeated:
			recorded[r] = p.ID
		case !r.pays(): // the shop's own payment was recorded before: the order ends
		case before.OrderID != p.OrderID || before.Amount != p.Amount:
			return decision{refused: order.ErrPaymentReused}
		default:
			outcome.Payment = before
			outcome.First, outcome.Order.Status = false, r.draft.Status
		}
		return decision{}
	})
	return recorded, nil
}

// leaveReserved takes the order's units from reserved, or refuses the request if fewer units are reserved.
func (b *batch) leaveReserved(r *request) decision {
	if !b.outcomes[r].First {
		return decision{}
	}
	for _, line := range r.draft.Lines {
		if b.levels.SKUs[line.SKU].Reserved < line.Units {
			return decision{refused: fmt.Errorf("sku %q: %w", line.SKU, order.ErrNotReserved)}
		}
	}
	b.apply(r)
	return decision{}
}

// forgetPayments deletes the recorded payments of requests that were decided since.
func (b *batch) forgetPayments(tx order.Tx, recorded map[*request]string) error {
	var ids []string
	for r, id := range recorded {
		if _, decided := b.decisions[r]; decided {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return tx.ForgetPayments(ids...)
}
