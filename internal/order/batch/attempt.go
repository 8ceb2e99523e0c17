package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/order"
)

// batch is one attempt of a transaction.
type batch struct {
	requests []*request             // not refused so far; in the end, those that are done
	early    map[string]order.Order // that are written before the stock is read, by id
	left     map[string]int64       // units, by SKU, that the orders leave available
	fences   map[string]int64       // of the leases, by SKU; none for a SKU that is sold without
	locked   []string               // SKUs whose row another transaction has locked
}

// errNothing rolls an attempt back that changes nothing.
var errNothing = errors.New("no order is placed or ended")

// inTx runs do in a transaction, again after a deadlock. Without an error, the attempt that it returns is committed, or has
// changed nothing.
func (s *Seller) inTx(ctx context.Context, requests []*request, do func(order.Tx, *batch) error) (b *batch, err error) {
	err = s.Store.InTx(ctx, func(tx order.Tx) error {
		for _, r := range requests {
			r.reset()
		}
		b = &batch{requests: slices.Clone(requests)}
		return do(tx, b)
	})
	if err != nil && !errors.Is(err, errNothing) {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range b.locked {
		s.locked[sku] = true
	}
	return b, nil
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

// hasRows reports whether the rows of an order's SKUs are locked by this transaction, which has read the levels. If
// another transaction has locked one, the request waits behind, or fails if it does not wait.
func (s *Seller) hasRows(r *request, b *batch, levels order.Levels) bool {
	for _, line := range r.order.Lines {
		if levels.Has(line.SKU) {
			continue
		}
		b.locked = append(b.locked, line.SKU)
		if r.ending != nil && r.ending.NoWait {
			r.refusal = fmt.Errorf("%w: another transaction has locked the row of sku %q", order.ErrBusy, line.SKU)
		} else {
			r.next = &s.behind
		}
		return false
	}
	return true
}

// awaitRows returns requests to their queue once no other transaction has locked the rows of their SKUs.
func (s *Seller) awaitRows(buyers []*request) error {
	ctx, cancel := s.context(buyers)
	defer cancel()
	b := &batch{requests: slices.Clone(buyers)}
	free, err := s.Store.Unlocked(ctx, b.skus(), s.Patience)
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
		case time.Since(r.since) > rowTimeout:
			r.refusal = fmt.Errorf("%w: another transaction keeps a row locked", order.ErrBusy)
		case slices.ContainsFunc(r.order.Lines, isLocked):
			r.next = &s.behind
		case r.ending != nil:
			r.next = &s.ending
		default:
			r.next = &s.selling
		}
	}
	return nil
}

// keep leaves out the requests for which is returns false.
func (b *batch) keep(is func(*request) bool) {
	b.requests = slices.DeleteFunc(b.requests, func(r *request) bool { return !is(r) })
}

// where returns the part of the batch for which is returns true.
func (b *batch) where(is func(*request) bool) *batch {
	part := &batch{requests: slices.Clone(b.requests)}
	part.keep(is)
	return part
}

// dropped returns the keys that were claimed for requests which the batch has left out since.
func (b *batch) dropped(claimed []order.BuyerKey) []order.BuyerKey {
	kept := b.keys()
	return slices.DeleteFunc(claimed, func(k order.BuyerKey) bool { return k.Key == "" || slices.Contains(kept, k) })
}

func (b *batch) keys() []order.BuyerKey {
	return each(b, func(r *request) order.BuyerKey { return r.key })
}

func (b *batch) buyers() []string { return each(b, func(r *request) string { return r.key.Buyer }) }

func (b *batch) ids() []string { return each(b, func(r *request) string { return r.order.ID }) }

func (b *batch) orders() []order.Order {
	return each(b, func(r *request) order.Order { return *r.order })
}

func each[T any](b *batch, of func(*request) T) []T {
	all := make([]T, len(b.requests))
	for i, r := range b.requests {
		all[i] = of(r)
	}
	return all
}

// units adds up the units of each SKU.
func (b *batch) units() map[string]int64 {
	units := map[string]int64{}
	for _, r := range b.requests {
		for _, line := range r.order.Lines {
			units[line.SKU] += line.Units
		}
	}
	return units
}

// skus returns the names of the SKUs, sorted.
func (b *batch) skus() []string { return slices.Sorted(maps.Keys(b.units())) }
