package stock

import (
	"fmt"
	"time"
)

// Kind says why units moved.
type Kind string

const (
	// Supply brings new units in: Supplied and Available grow.
	Supply Kind = "supply"
	// Reserve holds units for an order: from Available to Reserved.
	Reserve Kind = "reserve"
	// Sell ends a reservation by payment: from Reserved to Sold.
	Sell Kind = "sell"
	// Release ends a reservation without one: from Reserved back to Available.
	Release Kind = "release"
)

// Movement is one row of the append-only ledger: what changed a SKU, by how much, for which order, under which fence.
type Movement struct {
	ID      string // UUIDv7
	SKU     string
	Kind    Kind
	OrderID string // empty for a supply
	Change  Level  // added to each count; negative where units leave
	Fence   int64  // that the database accepted; 0 if it compared none
	At      time.Time
}

// Change returns what a movement of this kind adds to each count.
func (k Kind) Change(units int64) Level {
	switch k {
	case Supply:
		return Level{Supplied: units, Available: units}
	case Reserve:
		return Level{Available: -units, Reserved: units}
	case Sell:
		return Level{Reserved: -units, Sold: units}
	default:
		return Level{Reserved: -units, Available: units}
	}
}

// TakeMode is how units are taken from a SKU when several buyers want the last ones.
type TakeMode string

const (
	// Overwrite writes back the level of an earlier read minus the units. Two buyers that read the same level sell the
	// same units: the lost update.
	Overwrite TakeMode = "overwrite"

	// Conditional subtracts in the database, if enough units are available.
	Conditional TakeMode = "conditional"

	// Fenced subtracts in the database, if enough units are available and the row was last written under a lower fence.
	Fenced TakeMode = "fenced"

	// Optimistic writes back the level of an earlier read minus the units, if the row has not changed since.
	Optimistic TakeMode = "optimistic"
)

// Take asks for units of a SKU to move from available to reserved.
type Take struct {
	SKU   string
	Units int64
	Seen  Level  // for Overwrite and Optimistic: the level read before
	Fence int64  // for Fenced: the fence of the lease held
	Terms *Terms // what the SKU must still be sold at, but for Overwrite; nil for any
}

// Delivery brings new units of a SKU in. Its key, chosen by the operator, keeps a delivery that is sent twice from
// counting twice.
type Delivery struct {
	SKU   string
	Key   string // one per delivery and SKU; never forgotten
	Units int64
	At    time.Time
}

// NewDelivery returns a delivery, or an ErrInvalid if the units are not in 1 to MaxUnits. The total of a SKU's units is
// checked when the delivery is booked.
func NewDelivery(sku, key string, units int64, now time.Time) (Delivery, error) {
	if units < 1 || units > MaxUnits {
		return Delivery{}, fmt.Errorf("%w: sku %q: units: want 1 to %d", ErrInvalid, sku, int64(MaxUnits))
	}
	return Delivery{SKU: sku, Key: key, Units: units, At: now.UTC()}, nil
}

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
