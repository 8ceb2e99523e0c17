package order

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/stock"
)

// OpenError tells how many orders of a buyer are pending, of which Max are
// allowed. It is an ErrTooManyOpen.
type OpenError struct {
	Open, Max int

	// Wait is the time until the first of them expires. One that is due counts
	// until a sweeper has found it: until then it holds its units.
	Wait time.Duration
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("%v: %d are pending, at most %d are allowed; pay or cancel one", ErrTooManyOpen, e.Open, e.Max)
}

// Unwrap makes it an ErrTooManyOpen.
func (e *OpenError) Unwrap() error { return ErrTooManyOpen }

// limits are those that an order has to keep. A purchase limit that changes while
// an order is placed counts for it as it was or as it is.
type limits struct {
	open   int              // orders of the buyer that may be pending; 0 for any number
	bought map[string]int64 // units that the buyer may have, by SKU, where that is limited
}

func (s *Service) limits(seen []stock.SKU) limits {
	l := limits{open: s.maxOpen, bought: map[string]int64{}}
	for _, sku := range seen {
		if sku.LimitPerBuyer > 0 {
			l.bought[sku.Name] = sku.LimitPerBuyer
		}
	}
	return l
}

// lock lets the buyers' orders be counted one by one. It comes before the units:
// of two orders of a buyer, the one that waits here holds no row that the other
// needs. The units of a SKU need no such lock: who takes some has its row.
func (l limits) lock(tx Tx, orders ...Order) error {
	if l.open == 0 {
		return nil
	}
	return tx.LockBuyers(buyersOf(orders)...)
}

// check counts, and returns why orders are over a limit, by their index. Each counts
// for those behind it, also if it is one of the first few, which are written already.
//
// It comes after the units, because of databases that refuse to update a row that has
// changed since the transaction first read anything: the row of a SKU changes all the
// time.
func (l limits) check(tx Tx, orders []Order, written int) (over map[int]error, err error) {
	var open map[string]OpenOrders
	if l.open > 0 {
		if open, err = tx.Open(buyersOf(orders)...); err != nil {
			return nil, err
		}
	}
	var bought map[BuyerSKU]int64
	if len(l.bought) > 0 {
		if bought, err = tx.Bought(buyersOf(orders), slices.Sorted(maps.Keys(l.bought))); err != nil {
			return nil, err
		}
	}
	for _, o := range orders[:written] {
		l.count(o, -1, open, bought)
	}
	over = map[int]error{}
	for i, o := range orders {
		if err := cmp.Or(l.checkOpen(o, open[o.Buyer]), l.checkBought(o, bought)); err != nil {
			over[i] = err
			continue
		}
		l.count(o, 1, open, bought)
	}
	return over, nil
}

// count counts an order in, or out with -1. Out, it leaves the time at which the first
// of the buyer's orders expires, which may be that of the one that is taken out.
func (l limits) count(o Order, by int, open map[string]OpenOrders, bought map[BuyerSKU]int64) {
	if l.open > 0 {
		now := open[o.Buyer]
		if now.Count == 0 || o.ExpiresAt.Before(now.First) {
			now.First = o.ExpiresAt
		}
		now.Count += by
		open[o.Buyer] = now
	}
	for _, line := range o.Lines {
		if _, limited := l.bought[line.SKU]; limited {
			bought[BuyerSKU{o.Buyer, line.SKU}] += int64(by) * line.Units
		}
	}
}

func (l limits) checkOpen(o Order, open OpenOrders) error {
	if l.open > 0 && open.Count >= l.open {
		return &OpenError{Open: open.Count, Max: l.open, Wait: open.First.Sub(o.CreatedAt)}
	}
	return nil
}

func (l limits) checkBought(o Order, bought map[BuyerSKU]int64) error {
	for _, line := range o.Lines {
		limit, limited := l.bought[line.SKU]
		if left := max(0, limit-bought[BuyerSKU{o.Buyer, line.SKU}]); limited && line.Units > left {
			return fmt.Errorf("sku %q: %w: %d for each buyer, %d of them left to buy", line.SKU, ErrPurchaseLimit, limit, left)
		}
	}
	return nil
}

// buyersOf returns each buyer once.
func buyersOf(orders []Order) []string {
	buyers := make([]string, len(orders))
	for i, o := range orders {
		buyers[i] = o.Buyer
	}
	slices.Sort(buyers)
	return slices.Compact(buyers)
}
