package stock

import (
	"fmt"
	"regexp"
	"time"
)

// Limits of a SKU. MaxUnits keeps every sum of a ledger far inside an int64.
const (
	MaxUnits = 1_000_000_000
	MaxPrice = 1_000_000_000_00
)

// Level says where the units of a SKU are.
type Level struct {
	Supplied  int64 // units ever received
	Available int64 // free to buy
	Reserved  int64 // held by unpaid orders
	Sold      int64 // paid for
}

// String lists where the units are.
func (l Level) String() string {
	return fmt.Sprintf("supplied %d, available %d, reserved %d, sold %d", l.Supplied, l.Available, l.Reserved, l.Sold)
}

// Balanced reports whether every supplied unit is in exactly one place.
func (l Level) Balanced() bool {
	return l.Supplied == l.Available+l.Reserved+l.Sold &&
		l.Supplied >= 0 && l.Available >= 0 && l.Reserved >= 0 && l.Sold >= 0
}

// SKU is one thing for sale.
type SKU struct {
	Name      string
	Price     Money
	Level     Level
	Fence     int64 // the highest fence under which the row was written; 0 for none
	CreatedAt time.Time
}

var (
	nameRule     = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	currencyRule = regexp.MustCompile(`^[A-Z]{3}$`)
)

// ValidName reports whether a SKU may be called name.
func ValidName(name string) bool { return nameRule.MatchString(name) }

// NewSKU checks its arguments and returns a SKU with all units available. The
// error is an ErrInvalid that names what is wrong.
func NewSKU(name string, price Money, units int64, now time.Time) (SKU, error) {
	switch {
	case !ValidName(name):
		return SKU{}, fmt.Errorf("%w: sku %.80q: want 1 to 64 of a-z, 0-9, '.', '_', '-', starting with a letter or digit", ErrInvalid, name)
	case price.Minor < 0 || price.Minor > MaxPrice:
		return SKU{}, fmt.Errorf("%w: sku %q: price: want 0 to %d minor units", ErrInvalid, name, int64(MaxPrice))
	case !currencyRule.MatchString(price.Currency):
		return SKU{}, fmt.Errorf("%w: sku %q: currency %.20q: want three capital letters such as EUR", ErrInvalid, name, price.Currency)
	case units < 0 || units > MaxUnits:
		return SKU{}, fmt.Errorf("%w: sku %q: units: want 0 to %d", ErrInvalid, name, int64(MaxUnits))
	}
	return SKU{
		Name:      name,
		Price:     price,
		Level:     Level{Supplied: units, Available: units},
		CreatedAt: now.UTC(),
	}, nil
}
