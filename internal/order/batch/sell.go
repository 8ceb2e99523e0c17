package batch

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// Sell implements order.Strategy.
func (s *Seller) Sell(ctx context.Context, d *order.Draft) error {
	if err := order.Pause(ctx, d.Think); err != nil {
		return err
	}
	draft := *d // the leader may still write to it when the caller has left
	r := newRequest(ctx, &draft.Order, d.Key, d.Fingerprint)
	r.draft = &draft
	s.queueOf(r).join(r)
	answered, err := s.await(r)
	if answered {
		*d = draft
	}
	return err
}

// queueOf returns the queue in which an order waits to be placed.
func (s *Seller) queueOf(r *request) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.selling
	for _, line := range r.order.Lines {
		switch sku, known := s.known[line.SKU]; {
		case known && sku.Available == 0:
			return &s.soldOut
		case s.lockedByOthers[line.SKU] > 0:
			q = &s.behind
		}
	}
	return q
}

func (s *Seller) sell(buyers []*request) { s.sellUnder(s.Locker, buyers) }

// sellUnder decides the orders of the buyers, and places those that can be placed, in one transaction, under leases of the
// locker, if there is one.
func (s *Seller) sellUnder(locker strategy.Locker, buyers []*request) {
	ctx, cancel := s.context(buyers)
	defer cancel()
	leases := &leases{seller: s, locker: locker, ctx: ctx}
	defer leases.release() // after the answers
	s.guard(buyers, func([]*request) error {
		b, err := s.inTx(ctx, buyers, func(tx order.Tx, b *batch) error { return s.place(tx, b, leases) }) //nolint:contextcheck // leases have it
		if err == nil && len(b.requests) > 0 && s.OnBatch != nil {
			s.OnBatch(len(b.requests))
		}
		return err
	})
}

// place is one attempt of the transaction. The instances queue for the leases, so place first writes the orders, whose
// rows no other transaction waits for. It predicts the orders by the last known terms of the SKUs, and mends them later
// if the terms have changed.
func (s *Seller) place(tx order.Tx, b *batch, leases *leases) error {
	if err := s.lockBuyers(tx, b); err != nil {
		return err
	}
	limits := order.Limits{MaxOpen: s.MaxOpen}
	if err := limits.CountOpen(tx, order.Map(b.requests, func(r *request) string { return r.key.Buyer })...); err != nil {
		return err
	}

	if err := b.claimKeys(tx); err != nil {
		return err
	}

	recalled := s.recall(b.skus())
	if err := tx.Insert(b.predict(recalled, limits)...); err != nil {
		return err
	}
	leases.acquire(b)
	if err := s.lockRows(tx, b, all); err != nil {
		return err
	}
	// If the predicted time is less than a second off, it stays: otherwise every order would have to be mended.
	if b.levels.At.Sub(recalled.At).Abs() < time.Second {
		b.levels.At = recalled.At
	}
	if err := s.lockBought(tx, b, &limits, all); err != nil {
		return err
	}
	b.decide(limits)

	// The orders that are left are placed.
	if len(b.requests) == 0 {
		return order.ErrNothing
	}
	if err := b.undo(tx); err != nil {
		return err
	}
	wrong, missing := b.mend()
	if err := tx.Delete(wrong...); err != nil {
		return err
	}
	if err := tx.Insert(missing...); err != nil {
		return err
	}
	b.fences = leases.fences(b.levels)
	// The rows are locked, the units are available, and the fences are higher: Move changes all rows.
	if err := tx.Move(b.movements(b.levels.At)...); err != nil {
		return err
	}
	free := b.where((*request).isFree)
	if _, _, err := tx.RecordPayments(order.Map(free.orders(), order.Order.OwnPayment)...); err != nil {
		return err
	}
	return tx.AddBought(b.levels.Limited(1, b.orders()...))
}

// predict returns the orders as these levels would place them. The levels may be outdated, and may lack SKUs.
func (b *batch) predict(levels order.Levels, limits order.Limits) (orders []order.Order) {
	b.early = map[string]order.Order{}
	for _, r := range b.requests {
		if r.draft.Price(levels) == nil && limits.TooManyOpen(r.draft.Order) == nil {
			b.early[r.draft.ID] = r.draft.Order
			orders = append(orders, r.draft.Order)
		}
	}
	return orders
}

// mend compares predicted orders with decided ones. It returns the ids of the orders to delete, and the orders to write.
func (b *batch) mend() (wrong []string, missing []order.Order) {
	for _, o := range b.orders() {
		early, written := b.early[o.ID]
		if written && early.CreatedAt.Equal(o.CreatedAt) && slices.Equal(early.Lines, o.Lines) {
			delete(b.early, o.ID)
		} else {
			missing = append(missing, o)
		}
	}
	return slices.Sorted(maps.Keys(b.early)), missing
}

// recall returns the remembered levels of the SKUs, and an estimate of the database's time.
func (s *Seller) recall(skus []string) order.Levels {
	s.mu.Lock()
	defer s.mu.Unlock()
	levels := order.Levels{SKUs: map[string]stock.SKU{}, At: time.Now().Add(s.ahead).UTC().Truncate(time.Microsecond)}
	for _, name := range skus {
		if sku, known := s.known[name]; known {
			levels.SKUs[name] = sku
		}
	}
	return levels
}

// decide refuses the orders that cannot be placed. Each order takes its units before the orders behind it are decided.
func (b *batch) decide(limits order.Limits) {
	b.keep(func(r *request) bool {
		r.refusal = b.refusal(r, limits)
		if r.refusal == nil {
			b.move(r)
		}
		return r.refusal == nil
	})
}

// refusal prices the order by the locked rows, and returns the reason if the order cannot be placed.
func (b *batch) refusal(r *request, limits order.Limits) error {
	if r.ctx.Err() != nil {
		return r.left() // the client may have been refused by another instance meanwhile
	}
	if err := b.levels.Cover(r.draft); err != nil {
		return err
	}
	if err := r.draft.Price(b.levels); err != nil {
		return err
	}
	return limits.Over(r.draft.Order)
}

// refuse answers the buyers of SKUs that were sold out. If units are available again, and the key is not on record, the
// request moves to the queue selling.
//
// refuse reads the stock before the keys: if an earlier request of a buyer took the last units, its key is on record.
func (s *Seller) refuse(buyers []*request) error {
	ctx, cancel := s.context(buyers)
	defer cancel()
	b := &batch{requests: slices.Clone(buyers)}
	levels, err := s.Store.Levels(ctx, b.lines()...)
	if err != nil {
		return err
	}
	keys, err := s.Store.UsedKeys(ctx, order.Map(b.requests, func(r *request) order.BuyerKey { return r.key })...)
	if err != nil {
		return err
	}
	for _, r := range buyers {
		if used, known := keys[r.key]; known {
			r.used = &used
		} else if r.refusal = levels.Cover(r.draft); r.refusal == nil {
			r.next = &s.selling
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.known, levels.SKUs)
	return nil
}
