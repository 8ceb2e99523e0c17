package stock

import "time"

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

// Movement is one row of the append-only ledger: what changed a SKU, by how
// much, for which order, under which fence.
type Movement struct {
	ID      string // UUIDv7
	SKU     string
	Kind    Kind
	OrderID string // empty for a supply
	Change  Level  // what is added to each count; negative where units leave
	Fence   int64  // that the database accepted; 0 where it compared none
	At      time.Time
}
