package order

import (
	"fmt"
	"time"

	"example.com/shop/internal/stock"
)

// Status is where an order is in its life.
type Status string

// An order begins as Pending and ends as one of the others.
const (
	Pending   Status = "pending"   // holds its units, until ExpiresAt
	Paid      Status = "paid"      // its units are sold
	Cancelled Status = "cancelled" // by the buyer; its units are available again
	Expired   Status = "expired"   // not paid in time; its units are available again
)

// Order is a buyer's purchase.
type Order struct {
	ID        string // UUIDv7
	Buyer     string
	Key       string // the idempotency key it was placed with
	Status    Status
	Lines     []Line // as the buyer wrote them, each of another SKU
	Total     stock.Money
	CreatedAt time.Time // by the database's clock, when the stock was read; see the package's doc
	ExpiresAt time.Time // by the same clock; from then on it cannot be paid
}

// Line is one SKU of an order and how many units of it.
type Line struct {
	SKU   string
	Units int64
	Price stock.Money // of one unit, when the order was placed
}

// skus returns the names in the order of the lines.
func (o Order) skus() []string {
	names := make([]string, len(o.Lines))
	for i, line := range o.Lines {
		names[i] = line.SKU
	}
	return names
}

// total adds up the lines. Those of two currencies are ErrInvalid.
func total(lines []Line) (stock.Money, error) {
	sum := lines[0].Price.Times(0)
	for _, line := range lines {
		if line.Price.Currency != sum.Currency {
			return stock.Money{}, fmt.Errorf("%w: sku %q costs %s and sku %q %s: order them one by one",
				ErrInvalid, lines[0].SKU, sum.Currency, line.SKU, line.Price.Currency)
		}
		sum.Minor += line.Price.Times(line.Units).Minor
	}
	return sum, nil
}

// The highest total that the limits allow fits, or this does not compile.
const _ int64 = stock.MaxPrice * MaxUnits * MaxLines
