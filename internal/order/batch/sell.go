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
	orders []*buyer         // whose orders may still be placed; in the end, those that are
	left   map[string]int64 // units, by SKU, that are available behind these orders
	locked []string         // SKUs whose row another transaction keeps locked
}

// sell decides the orders of the buyers, and places those that can be placed, in one transaction. Its error is the
// outcome of orders that were to be placed.
func (s *Seller) sell(buyers []*buyer) error {
	ctx, cancel := s.context(buyers)
	defer cancel()
	var b *batch
	err := s.Store.InTx(ctx, func(tx order.Tx) error {
		for _, w := range buyers {
			w.refusal, w.claim, w.next = nil, nil, nil // of an attempt that ended in a deadlock
		}
		b = &batch{orders: slices.Clone(buyers)}
		return s.place(tx, b)
	})
	if errors.Is(err, errNoOrder) {
		err = nil
	}
	if err == nil {
		s.note(b)
		s.OnBatch(len(b.orders))
	}
	return err
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
	b.keep(func(w *buyer) bool {
		if slices.Contains(locked, w.draft.Buyer) {
			w.refusal = &order.LockedError{Buyers: locked}
		}
		return w.refusal == nil
	})
	limits := order.Limits{MaxOpen: s.MaxOpen}
	if err := limits.CountOpen(tx, b.names()...); err != nil {
		return err
	}

	taken, err := tx.ClaimKeys(b.drafts()...)
	if err != nil {
		return err
	}
	b.keep(func(w *buyer) bool {
		if claim, known := taken[w.key()]; known {
			w.claim = &claim
		}
		return w.claim == nil
	})
	claimed := b.drafts()

	levels, err := tx.TryLevels(b.skus(), patience)
	if err != nil {
		return err
	}
	b.keep(func(w *buyer) bool {
		for _, line := range w.draft.Lines {
			if !levels.Has(line.SKU) {
				b.locked = append(b.locked, line.SKU)
				w.next, w.since = &s.behind, cmp.Or(w.since, time.Now())
			}
		}
		return w.next == nil
	})
	if err := limits.CountBought(tx, levels, b.names()...); err != nil {
		return err
	}
	b.decide(levels, limits)

	// What is left of the batch is placed.
	if len(b.orders) == 0 {
		return errNoOrder
	}
	refused := slices.DeleteFunc(claimed, func(d *order.Draft) bool { return slices.Contains(b.drafts(), d) })
	if err := tx.FreeKeys(refused...); err != nil {
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
	b.keep(func(w *buyer) bool {
		w.refusal = b.refusal(w, levels, limits)
		if w.refusal == nil {
			for _, line := range w.draft.Lines {
				b.left[line.SKU] -= line.Units
			}
		}
		return w.refusal == nil
	})
}

func (b *batch) refusal(w *buyer, levels order.Levels, limits order.Limits) error {
	if w.ctx.Err() != nil {
		return w.left() // the client may have been refused by another instance meanwhile
	}
	for _, line := range w.draft.Lines {
		if b.left[line.SKU] < line.Units {
			return order.SoldOut(line.SKU)
		}
	}
	if err := w.draft.Price(levels); err != nil {
		return err
	}
	return limits.Over(w.draft.Order)
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
func (s *Seller) refuse(buyers []*buyer) error {
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
	for _, w := range buyers {
		if claim, known := claims[w.key()]; known {
			w.claim = &claim
		} else if w.refusal = levels.Cover(w.draft); w.refusal == nil {
			w.next = &s.waiting
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
func (s *Seller) awaitRows(buyers []*buyer) error {
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
	for _, w := range buyers {
		isLocked := func(line order.Line) bool { return !slices.Contains(free, line.SKU) }
		switch {
		case !slices.ContainsFunc(w.draft.Lines, isLocked):
			w.next = &s.waiting
		case time.Since(w.since) > rowTimeout:
			w.next, w.refusal = nil, order.ErrBusy
		default:
			w.next = &s.behind
		}
	}
	return nil
}

// context returns the ctx of a batch, which has the values of the first buyer's, and does not end with it.
func (s *Seller) context(buyers []*buyer) (context.Context, context.CancelFunc) {
	ctx := s.Share(context.WithoutCancel(buyers[0].ctx), func() []context.Context {
		all := make([]context.Context, len(buyers))
		for i, w := range buyers {
			all[i] = w.ctx
		}
		return all
	})
	return context.WithTimeout(ctx, batchTimeout)
}

// keep leaves out the buyers for which it returns false.
func (b *batch) keep(decided func(*buyer) bool) {
	b.orders = slices.DeleteFunc(b.orders, func(w *buyer) bool { return !decided(w) })
}

func (b *batch) names() []string { return each(b, func(w *buyer) string { return w.draft.Buyer }) }

func (b *batch) drafts() []*order.Draft {
	return each(b, func(w *buyer) *order.Draft { return w.draft })
}

func (b *batch) keys() []order.BuyerKey { return each(b, (*buyer).key) }

func (b *batch) placed() []order.Order {
	return each(b, func(w *buyer) order.Order { return w.draft.Order })
}

func each[T any](b *batch, of func(*buyer) T) []T {
	all := make([]T, len(b.orders))
	for i, w := range b.orders {
		all[i] = of(w)
	}
	return all
}

// units adds up the units of each SKU.
func (b *batch) units() map[string]int64 {
	units := map[string]int64{}
	for _, w := range b.orders {
		for _, line := range w.draft.Lines {
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
