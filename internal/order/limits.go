package order

import (
	"fmt"
	"maps"
	"slices"
)

// Limits are the limits per buyer that a transaction checks when it places orders. Limits on units are those of the
// levels by which the orders were priced.
type Limits struct {
	MaxOpen int              // pending orders of a buyer; 0 for any number
	units   map[string]int64 // that a buyer may have, by SKU, where that is limited

	open   map[string]OpenOrders // by buyer
	bought map[BuyerSKU]int64
}

// CountOpen counts the pending orders of the buyers, whose rows are locked.
func (l *Limits) CountOpen(tx Tx, buyers ...string) (err error) {
	if l.MaxOpen > 0 && len(buyers) > 0 {
		l.open, err = tx.Open(buyers...)
	}
	return err
}

// CountBought counts what the buyers have of SKUs that are limited. The rows of the stock are locked.
func (l *Limits) CountBought(tx Tx, levels Levels, buyers ...string) (err error) {
	l.units = NewLimits(l.MaxOpen, levels).units
	if len(l.units) > 0 && len(buyers) > 0 {
		l.bought, err = tx.Bought(buyers, slices.Sorted(maps.Keys(l.units)))
	}
	return err
}

// Over returns the error of an order, of which nothing is written yet, that would exceed a limit; nil if it does not.
func (l *Limits) Over(o Order) error { return l.over(o, l.open[o.Buyer], l.bought) }

// NewLimits returns the limits for orders that were priced by these levels.
func NewLimits(maxOpen int, levels Levels) Limits {
	l := Limits{MaxOpen: maxOpen, units: map[string]int64{}}
	for _, sku := range levels.SKUs {
		if sku.LimitPerBuyer > 0 {
			l.units[sku.Name] = sku.LimitPerBuyer
		}
	}
	return l
}

// Lock locks the buyers' rows, so that pending orders are counted one transaction at a time. Limits on units need no such
// lock: a transaction that takes units holds the SKU's row.
func (l Limits) Lock(tx Tx, orders ...Order) error {
	if l.MaxOpen == 0 {
		return nil
	}
	others, err := tx.LockBuyers(buyers(orders)...)
	if len(others) > 0 {
		err = &LockedError{Buyers: others}
	}
	return err
}

// Check returns the errors of the orders that are over a limit, by their index. ErrBehind is that of an order that is over
// it only with those before it, which may yet fail. The orders are inserted before. Check comes after the units are taken:
// from then on no other transaction takes units of the same SKUs.
func (l Limits) Check(tx Tx, orders ...Order) (over map[int]error, err error) {
	open := map[string]OpenOrders{}
	if l.MaxOpen > 0 {
		if open, err = tx.Open(buyers(orders)...); err != nil {
			return nil, err
		}
	}
	bought := map[BuyerSKU]int64{}
	if len(l.units) > 0 {
		if bought, err = tx.Bought(buyers(orders), slices.Sorted(maps.Keys(l.units))); err != nil {
			return nil, err
		}
	}
	count := func(o Order, by int) {
		now := open[o.Buyer]
		now.Count += by
		open[o.Buyer] = now
		for _, line := range o.Lines {
			bought[BuyerSKU{o.Buyer, line.SKU}] += int64(by) * line.Units
		}
	}
	for _, o := range orders {
		count(o, -1)
	}
	over = map[int]error{}
	for i, o := range orders {
		if err := l.over(o, open[o.Buyer], bought); err != nil {
			over[i] = err
		}
	}
	for i, o := range orders {
		switch {
		case over[i] != nil:
		case l.over(o, open[o.Buyer], bought) != nil:
			over[i] = ErrBehind
		default:
			count(o, 1)
		}
	}
	return over, nil
}

// over returns the error of an order that would exceed a limit; nil if it does not.
func (l Limits) over(o Order, open OpenOrders, bought map[BuyerSKU]int64) error {
	if l.MaxOpen > 0 && open.Count >= l.MaxOpen {
		e := ErrTooManyOpen.with("%d are pending, at most %d are allowed; pay or cancel one", open.Count, l.MaxOpen)
		e.Wait = open.First.Sub(o.CreatedAt)
		return e
	}
	for _, line := range o.Lines {
		limit, limited := l.units[line.SKU]
		left := max(0, limit-bought[BuyerSKU{o.Buyer, line.SKU}])
		if limited && line.Units > left {
			return fmt.Errorf("sku %q: %w", line.SKU, ErrPurchaseLimit.with("%d for each buyer, %d of them left to buy", limit, left))
		}
	}
	return nil
}

// buyers returns the buyers of the orders, sorted, each once.
func buyers(orders []Order) []string {
	names := make([]string, len(orders))
	for i, o := range orders {
		names[i] = o.Buyer
	}
	slices.Sort(names)
	return slices.Compact(names)
}
