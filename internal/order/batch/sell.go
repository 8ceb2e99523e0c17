package batch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// batch is one attempt to place the orders of some buyers.
type batch struct {
	orders []*request       // whose orders may still be placed or ended; in the end, those that are
	left   map[string]int64 // units, by SKU, that are available behind these orders
	locked []string         // SKUs whose row another transaction keeps locked
}

// sell decides the orders of the buyers, and places those that can be placed, in one transaction. Its error is the
// outcome of orders that were to be placed.
func (s *Seller) sell(buyers []*request) error {
	ctx, cancel := s.context(buyers)
	defer cancel()
	var b *batch
	err := s.Store.InTx(ctx, func(tx order.Tx) error {
		for _, r := range buyers {
			r.refusal, r.claim, r.next = nil, nil, nil // of an attempt that ended in a deadlock
		}
		b = &batch{orders: slices.Clone(buyers)}
		return s.place(tx, b)
	})
	if errors.Is(err, errNoOrder) {
		err = nil
	}
	if err != nil {
		return err
	}
	s.note(b)
	if len(b.orders) > 0 {
		s.OnBatch(len(b.orders))
	}
	return nil
}

// errNoOrder rolls a transaction back that places nothing.
var errNoOrder = errors.New("no order is placed")

// place is one attempt of the transaction. Rows are locked in the same sequence as by all others: of buyers, keys,
// stock.
func (s *Seller) place(tx order.Tx, b *batch) error {
	// One transaction at a time places orders of a buyer, so that none waits for a key, and pending orders are counted.
	locked, err := tx.LockBuyers(b.names()...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		if slices.Contains(locked, r.draft.Buyer) {
			r.refusal = &order.LockedError{Buyers: locked}
		}
		return r.refusal == nil
	})
	limits := order.Limits{MaxOpen: s.MaxOpen}
	if err := limits.CountOpen(tx, b.names()...); err != nil {
		return err
	}

	taken, err := tx.ClaimKeys(b.drafts()...)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		if claim, known := taken[r.key()]; known {
			r.claim = &claim
		}
		return r.claim == nil
	})
	claimed := b.keys()

	levels, err := tx.TryLevels(b.skus(), patience)
	if err != nil {
		return err
	}
	b.keep(func(r *request) bool {
		for _, line := range r.draft.Lines {
			if !levels.Has(line.SKU) {
				b.locked = append(b.locked, line.SKU)
				r.next = &s.behind
			}
		}
		return r.next == nil
	})
	if err := limits.CountBought(tx, levels, b.names()...); err != nil {
		return err
	}
	b.decide(levels, limits)

	// What is left of the batch is placed.
	if len(b.orders) == 0 {
		return errNoOrder
	}
	if err := tx.FreeKeys(b.without(claimed)...); err != nil {
		return err
	}
	if err := tx.Insert(b.placed()...); err != nil {
		return err
	}
	if err := tx.TakeAll(b.takes()...); err != nil {
		return err
	}
	return tx.Record(b.movements()...)
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

// note remembers the SKUs whose next buyers wait in another queue.
func (s *Seller) note(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range b.locked {
		s.locked[sku] = true
	}
	for sku, units := range b.left {
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
	b := &batch{orders: slices.Clone(buyers)}
	levels, err := s.Store.Levels(ctx, b.skus())
	if err != nil {
		return err
	}
	claims, err := s.Store.Claims(ctx, b.keys()...)
	if err != nil {
		return err
	}
	for _, r := range buyers {
		if claim, known := claims[r.key()]; known {
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

// awaitRows lets the buyers of rows that are free again go on.
func (s *Seller) awaitRows(buyers []*request) error {
	ctx, cancel := s.context(buyers)
	defer cancel()
	b := &batch{orders: slices.Clone(buyers)}
	free, err := s.Store.Unlocked(ctx, b.skus(), patience)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range free {
		delete(s.locked, sku)
	}
	for _, r := range buyers {
		r.since = cmp.Or(r.since, time.Now())
		isLocked := func(line order.Line) bool { return !slices.Contains(free, line.SKU) }
		switch {
		case !slices.ContainsFunc(r.order().Lines, isLocked):
			r.next = &s.selling
			if r.ending != nil {
				r.next = &s.ending
			}
		case time.Since(r.since) > rowTimeout:
			r.next, r.refusal = nil, order.ErrBusy
		default:
			r.next = &s.behind
		}
	}
	return nil
}

// context returns the ctx of a batch, which has the values of the first buyer's, and does not end with it.
func (s *Seller) context(buyers []*request) (context.Context, context.CancelFunc) {
	ctx := s.Share(context.WithoutCancel(buyers[0].ctx), func() []context.Context {
		var all []context.Context
		for _, r := range buyers {
			all = append(all, r.ctx)
		}
		return all
	})
	return context.WithTimeout(ctx, batchTimeout)
}

// keep leaves out the buyers for which it returns false.
func (b *batch) keep(decided func(*request) bool) {
	b.orders = slices.DeleteFunc(b.orders, func(r *request) bool { return !decided(r) })
}

func (b *batch) names() []string { return each(b, func(r *request) string { return r.draft.Buyer }) }

func (b *batch) drafts() []*order.Draft {
	return each(b, func(r *request) *order.Draft { return r.draft })
}

// without returns the keys that are of no order of the batch.
func (b *batch) without(keys []order.BuyerKey) []order.BuyerKey {
	kept := b.keys()
	return slices.DeleteFunc(keys, func(key order.BuyerKey) bool { return slices.Contains(kept, key) })
}

func (b *batch) keys() []order.BuyerKey { return each(b, (*request).key) }

func (b *batch) placed() []order.Order {
	return each(b, func(r *request) order.Order { return r.draft.Order })
}

func each[T any](b *batch, of func(*request) T) []T {
	all := make([]T, len(b.orders))
	for i, r := range b.orders {
		all[i] = of(r)
	}
	return all
}

// units adds up the units of each SKU.
func (b *batch) units() map[string]int64 {
	units := map[string]int64{}
	for _, r := range b.orders {
		for _, line := range r.order().Lines {
			units[line.SKU] += line.Units
		}
	}
	return units
}

// skus returns the names of the SKUs, sorted.
func (b *batch) skus() []string { return slices.Sorted(maps.Keys(b.units())) }

func (b *batch) takes() []stock.Take {
	units := b.units()
	takes := make([]stock.Take, 0, len(units))
	for _, sku := range b.skus() {
		takes = append(takes, stock.Take{SKU: sku, Units: units[sku]})
	}
	return takes
}

func (b *batch) movements() []stock.Movement {
	var all []stock.Movement
	for _, o := range b.placed() {
		all = append(all, o.Movements(stock.Reserve, nil, o.CreatedAt)...)
	}
	return all
}
