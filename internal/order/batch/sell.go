package batch

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Sell implements order.Strategy.
func (s *Seller) Sell(ctx context.Context, d *order.Draft) error {
	s.look(d.LookedUp)
	d.LookedUp = order.Levels{} // it may be sold again later
	r := newSale(ctx, d)
	if err := s.queueOf(r).join(r); err != nil {
		return err
	}
	s.OnWait(ctx)
	return s.await(r)
}

// queueOf returns the queue for an order that is to be placed.
func (s *Seller) queueOf(r *request) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	among := func(skus map[string]bool) bool {
		return slices.ContainsFunc(r.order.Lines, func(l order.Line) bool { return skus[l.SKU] })
	}
	switch {
	case among(s.empty):
		return &s.soldOut
	case among(s.locked):
		return &s.behind
	}
	return &s.selling
}

// serve sells to the buyers, and then gives the leases back.
func (s *Seller) serve(buyers []*request) {
	ctx, cancel := s.context(buyers)
	defer cancel()
	leases := &leases{seller: s, ctx: ctx}
	s.guard(buyers, func([]*request) error { return s.sell(ctx, buyers, leases) })
	leases.release() // after the answers
}

// sell decides the orders of the buyers, and places those that can be placed, in one transaction. Its error is the
// outcome of orders that were to be placed.
func (s *Seller) sell(ctx context.Context, buyers []*request, leases *leases) error {
	var think time.Duration
	for _, r := range buyers {
		think = max(think, r.draft.Think)
	}
	if err := order.Pause(ctx, think); err != nil {
		return err
	}
	b, err := s.inTx(ctx, buyers, func(tx order.Tx, b *batch) error { return s.place(tx, b, leases) }) //nolint:contextcheck // leases have it
	if err != nil {
		return err
	}
	s.noteEmpty(b.left)
	if len(b.requests) > 0 {
		s.OnBatch(len(b.requests))
	}
	return nil
}

// place is one attempt of the transaction. The instances take turns from the leases on. So the orders are written before,
// as they will be if the SKUs are sold at the same terms as the last time, and mended if not.
func (s *Seller) place(tx order.Tx, b *batch, leases *leases) error {
	// One transaction at a time places orders of a buyer: its pending orders can be counted, and no other transaction
	// claims its keys.
	locked, err := tx.LockBuyers(b.buyers()...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		if slices.Contains(locked, r.draft.Buyer) {
			r.refusal = order.ErrBuyerLocked
		}
		return r.refusal == nil
	})
	limits := order.Limits{MaxOpen: s.MaxOpen}
	if err := limits.CountOpen(tx, b.buyers()...); err != nil {
		return err
	}

	taken, err := tx.ClaimKeys(b.drafts()...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		if claim, known := taken[r.key]; known {
			r.claim = &claim
		}
		return r.claim == nil
	})
	claimed := b.keys()

	foreseen := s.lastLook(b.skus())
	if err := tx.Insert(b.foresee(foreseen, limits)...); err != nil {
		return err
	}
	leases.acquire(b)
	levels, err := tx.TryLevels(b.skus(), s.Patience)
	if err != nil {
		return err
	}
	s.look(levels)
	if levels.At.Sub(foreseen.At).Abs() < time.Second {
		levels.At = foreseen.At
	}
	b.keep(func(r *request) bool { return s.hasRows(r, b, levels) })
	if err := limits.CountBought(tx, levels, b.orders()...); err != nil {
		return err
	}
	b.decide(levels, limits)

	// What is left of the batch is placed.
	if len(b.requests) == 0 {
		return errNothing
	}
	if err := tx.FreeKeys(b.dropped(claimed)...); err != nil {
		return err
	}
	wrong, missing := b.mend()
	if err := tx.Delete(wrong...); err != nil {
		return err
	}
	if err := tx.Insert(missing...); err != nil {
		return err
	}
	b.fences = leases.fences(levels)
	if err := tx.TakeAll(b.takes()...); err != nil {
		return err
	}
	if err := tx.AddBought(levels.Limited(1, b.orders()...)); err != nil {
		return err
	}
	return tx.Record(b.movements()...)
}

// foresee returns the orders that will be placed by these levels, which may be out of date or of some SKUs alone.
func (b *batch) foresee(levels order.Levels, limits order.Limits) (orders []order.Order) {
	b.early = map[string]order.Order{}
	for _, r := range b.requests {
		unknown := func(l order.Line) bool { return !levels.Has(l.SKU) }
		if slices.ContainsFunc(r.draft.Lines, unknown) || r.draft.Price(levels) != nil || limits.TooManyOpen(r.draft.Order) != nil {
			continue
		}
		b.early[r.draft.ID] = r.draft.Order
		orders = append(orders, r.draft.Order)
	}
	return orders
}

// mend returns the orders that were written early and are not placed like that, and those that are still to be written.
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

// lastLook returns the SKUs as batches have read them last, those that are known, and what the time is by the database's
// clock, as far as is known.
func (s *Seller) lastLook(skus []string) order.Levels {
	s.mu.Lock()
	defer s.mu.Unlock()
	levels := order.Levels{At: s.seenAt.Add(time.Since(s.seenSince)).Truncate(time.Microsecond)}
	for _, name := range skus {
		if sku, known := s.seen[name]; known {
			levels.SKUs = append(levels.SKUs, sku)
		}
	}
	return levels
}

// look remembers levels for lastLook.
func (s *Seller) look(levels order.Levels) {
	if len(levels.SKUs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seenAt, s.seenSince = levels.At, time.Now()
	if len(s.seen) > maxSeen {
		clear(s.seen)
	}
	for _, sku := range levels.SKUs {
		s.seen[sku.Name] = sku
	}
}

// decide refuses the orders that cannot be placed, now that the rows that decide are locked. Each takes its units from
// those behind it.
func (b *batch) decide(levels order.Levels, limits order.Limits) {
	b.left = map[string]int64{}
	for _, sku := range levels.SKUs {
		b.left[sku.Name] = sku.Level.Available
	}
	b.keep(func(r *request) bool {
		r.refusal = b.refusal(r, levels, limits)
		if r.refusal == nil {
			for _, line := range r.draft.Lines {
				b.left[line.SKU] -= line.Units
			}
		}
		return r.refusal == nil
	})
}

func (b *batch) refusal(r *request, levels order.Levels, limits order.Limits) error {
	if r.ctx.Err() != nil {
		return r.left() // the client may have been refused by another instance meanwhile
	}
	for _, line := range r.draft.Lines {
		if b.left[line.SKU] < line.Units {
			return order.SoldOut(line.SKU)
		}
	}
	if err := r.draft.Price(levels); err != nil {
		return err
	}
	return limits.Over(r.draft.Order)
}

// noteEmpty remembers the SKUs whose next buyers wait in the queue of what is sold out.
func (s *Seller) noteEmpty(left map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sku, units := range left {
		if units == 0 {
			s.empty[sku] = true
		}
	}
}

// refuse answers buyers of SKUs of which nothing was left. Those that find something after all are sold to.
//
// The stock is read before the keys: if an earlier request of a buyer took the last units, its key is on record by
// then.
func (s *Seller) refuse(buyers []*request) error {
	ctx, cancel := s.context(buyers)
	defer cancel()
	b := &batch{requests: slices.Clone(buyers)}
	levels, err := s.Store.Levels(ctx, b.skus())
	if err != nil {
		return err
	}
	claims, err := s.Store.Claims(ctx, b.keys()...)
	if err != nil {
		return err
	}
	for _, r := range buyers {
		if claim, known := claims[r.key]; known {
			r.claim = &claim
		} else if r.refusal = levels.Cover(r.draft); r.refusal == nil {
			r.next = &s.selling
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range levels.SKUs {
		if sku.Level.Available > 0 {
			delete(s.empty, sku.Name)
		}
	}
	return nil
}

func (b *batch) drafts() []*order.Draft {
	return each(b, func(r *request) *order.Draft { return r.draft })
}

func (b *batch) takes() []stock.Take {
	units := b.units()
	takes := make([]stock.Take, 0, len(units))
	for _, sku := range b.skus() {
		takes = append(takes, stock.Take{SKU: sku, Units: units[sku], Fence: b.fences[sku]})
	}
	return takes
}

func (b *batch) movements() []stock.Movement {
	var all []stock.Movement
	for _, o := range b.orders() {
		all = append(all, o.Movements(stock.Reserve, func(sku string) int64 { return b.fences[sku] }, o.CreatedAt)...)
	}
	return all
}
