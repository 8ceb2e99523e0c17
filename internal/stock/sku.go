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

	// LimitPerBuyer is how many units of it a buyer may have in orders that are
	// pending or paid; 0 for any number.
	LimitPerBuyer int64
}

// Terms are what a SKU is sold at.
type Terms struct {
	Price         Money
	LimitPerBuyer int64
}

// Terms returns those of the SKU.
func (s SKU) Terms() Terms { return Terms{Price: s.Price, LimitPerBuyer: s.LimitPerBuyer} }

const maxName = 64 // characters

var currencyRule = regexp.MustCompile(`^[A-Z]{3}$`)

// ValidName reports whether a SKU may be called name: 1 to 64 small letters, digits,
// '.', '_' and '-', the first a letter or a digit.
func ValidName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// CheckLimit returns ErrInvalid, wrapped, for what cannot be a SKU's LimitPerBuyer.
func CheckLimit(perBuyer int64) error {
	if perBuyer < 0 || perBuyer > MaxUnits {
		return fmt.Errorf("%w: limit_per_buyer: want 0, for none, to %d", ErrInvalid, int64(MaxUnits))
	}
	return nil
}

// NewSKU checks its arguments and returns a SKU with all units available. The
// error is an ErrInvalid that names what is wrong.
func NewSKU(name string, price Money, units int64, now time.Time) (SKU, error) {
	switch {
	case name == "":
		return SKU{}, fmt.Errorf("%w: sku is missing: want 1 to 64 of a-z, 0-9, '.', '_', '-'", ErrInvalid)
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
