package order

import (
	"time"

	"example.com/shop/internal/stock"
)

// Status is where an order is in its life.
type Status string

// Pending orders hold their units and are not paid for.
const Pending Status = "pending"

// Order is a buyer's purchase.
type Order struct {
	ID        string // UUIDv7
	Buyer     string
	Key       string // the idempotency key it was placed with
	Status    Status
	Lines     []Line
	Total     stock.Money
	CreatedAt time.Time
}

// Line is one SKU of an order and how many units of it.
type Line struct {
	SKU   string
	Units int64
	Price stock.Money // of one unit, when the order was placed
}
