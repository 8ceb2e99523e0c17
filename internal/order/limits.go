package order

import (
	"fmt"
	"maps"
	"slices"
)

// Limits are the limits per buyer that a transaction checks when it places orders. Limits on units are those of the
// levels by which the orders were priced.
type Limits struct {
	MaxOpen int // pending orders of a buyer; 0 for any number

	open   map[string]OpenOrders // by buyer
	levels Levels
	bought map[BuyerSKU]int64
}

// CountOpen counts the pending orders of the buyers, whose rows are locked.
func (l *Limits) CountOpen(tx Tx, buyers ...string) (err error) {
	if l.MaxOpen > 0 && len(buyers) > 0 {
		l.open, err = tx.Open(buyers...)
	}
	return err
}

// CountBought counts what the buyers of the orders have of SKUs that are limited. The rows of the stock are locked.
func (l *Limits) CountBought(tx Tx, levels Levels, orders ...Order) (err error) {
	l.levels = levels
	l.bought, err = tx.Bought(slices.Collect(maps.Keys(levels.Limited(1, orders...)))...)
	return err
}

// TooManyOpen returns the error of an order whose buyer has as many pending orders as are allowed; nil for any other.
func (l *Limits) TooManyOpen(o Order) error {
	open := l.open[o.Buyer]
	if l.MaxOpen == 0 || open.Count < l.MaxOpen {
		return nil
	}
	e := ErrTooManyOpen.with("%d are pending, at most %d are allowed; pay or cancel one", open.Count, l.MaxOpen)
	e.Wait = open.First.Sub(o.CreatedAt)
	return e
}

// Over returns the error of an order that would exceed a limit; nil if it does not.
func (l *Limits) Over(o Order) error {
	if err := l.TooManyOpen(o); err != nil {
		return err
	}
	for _, line := range o.Lines {
		limit := l.levels.SKUs[line.SKU].LimitPerBuyer
		left := max(0, limit-l.bought[BuyerSKU{o.Buyer, line.SKU}])
		if limit > 0 && line.Units > left {
			return fmt.Errorf("sku %q: %w", line.SKU, ErrPurchaseLimit.with("%d for each buyer, %d of them left to buy", limit, left))
		}
	}
	return nil
}
