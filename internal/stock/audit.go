package stock

import (
	"fmt"
)

// Account is everything that is known about the units of one SKU, from three sources that must agree: the level, the
// ledger and the orders.
type Account struct {
	SKU          string
	Level        Level
	Ledger       Level // sum of all movements
	OrderedUnits int64 // units that pending and paid orders hold
	OpenUnits    int64 // of those, units of pending orders
	PaidUnits    int64 // of those, units of paid orders
	Orders       int64 // number of accepted orders, whatever their status
	Fence        int64 // the highest under which the level was written
	LedgerFence  int64 // the highest of all movements
}

// Oversold is the number of units in orders beyond what was ever supplied. It is counted from orders: a lost update
// oversells while the level reads zero.
func (a Account) Oversold() int64 {
	return max(0, a.OrderedUnits-a.Level.Supplied)
}

// Difference is one broken invariant.
type Difference struct {
	Invariant string `json:"invariant"`          // I1, I2, I4, I5, I8
	SKU       string `json:"sku,omitempty"`      // empty where it concerns no single SKU
	OrderID   string `json:"order_id,omitempty"` // empty where it concerns no single order
	Detail    string `json:"detail"`
}

// Check compares the three sources and returns what differs.
func (a Account) Check() []Difference {
	var found []Difference
	differ := func(invariant, format string, args ...any) {
		found = append(found, Difference{Invariant: invariant, SKU: a.SKU, Detail: fmt.Sprintf(format, args...)})
	}
	l := a.Level
	if l.Supplied != l.Available+l.Reserved+l.Sold || min(l.Supplied, l.Available, l.Reserved, l.Sold) < 0 {
		differ("I1", "supplied %d is not available %d + reserved %d + sold %d, none negative",
			l.Supplied, l.Available, l.Reserved, l.Sold)
	}
	if over := a.Oversold(); over > 0 {
		differ("I1", "oversold by %d: orders hold %d units of %d supplied", over, a.OrderedUnits, a.Level.Supplied)
	}
	if a.Level.Reserved != a.OpenUnits {
		differ("I1", "reserved %d, but open orders hold %d units", a.Level.Reserved, a.OpenUnits)
	}
	if a.Level.Sold != a.PaidUnits {
		differ("I1", "sold %d, but paid orders have %d units", a.Level.Sold, a.PaidUnits)
	}
	if a.Fence != a.LedgerFence {
		differ("I4", "level was written under fence %d; the highest of its movements is %d", a.Fence, a.LedgerFence)
	}
	if a.Level != a.Ledger {
		differ("I5", "level says %v; the ledger adds up to %v", a.Level, a.Ledger)
	}
	return found
}
