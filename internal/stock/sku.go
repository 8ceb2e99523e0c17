// Package stock has the values that a shop counts: SKUs with their levels, the movements between them, and money. It
// knows no database; package store keeps them in one.
//
// A SKU is one thing for sale, counted in whole units. Its Level says where every unit ever supplied is now: available
// to buy, reserved by a pending order, or sold. Units move between those three and never vanish:
//
//	Supplied = Available + Reserved + Sold, none of them negative.
//
// Each change is recorded as a Movement in an append-only ledger, in the transaction that makes the change. For the
// audit, an Account compares level, ledger and orders.
package stock

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// ErrInvalid means that a name, price or count breaks a rule of this package.
var ErrInvalid = errors.New("invalid")

// Limits of a SKU. MaxUnits keeps every sum of a ledger far inside an int64.
const (
	MaxUnits = 1_000_000_000
	MaxPrice = 1_000_000_000_00 // minor units of the currency
	maxName  = 64               // characters
)

// Level says where the units of a SKU are.
type Level struct {
	Supplied  int64 `json:"supplied"`  // units ever received
	Available int64 `json:"available"` // free to buy
	Reserved  int64 `json:"reserved"`  // held by pending orders
	Sold      int64 `json:"sold"`      // paid for
}

// String lists where the units are.
func (l Level) String() string {
	return fmt.Sprintf("supplied %d, available %d, reserved %d, sold %d", l.Supplied, l.Available, l.Reserved, l.Sold)
}

// SKU is one thing for sale.
type SKU struct {
	Name          string
	Price         Money
	Level         Level
	LimitPerBuyer int64 // units that a buyer may have in pending and paid orders; 0 for any number
	Fence         int64 // the highest fence under which the row was written; 0 for none
	CreatedAt     time.Time
}

// Terms are the price of a SKU and its limit per buyer.
type Terms struct {
	Price         Money
	LimitPerBuyer int64
}

// Terms returns the terms of the SKU.
func (s SKU) Terms() Terms { return Terms{Price: s.Price, LimitPerBuyer: s.LimitPerBuyer} }

// ValidCurrency reports whether a currency is three capital letters.
func ValidCurrency(currency string) bool { return currencyRule.MatchString(currency) }

var currencyRule = regexp.MustCompile(`^[A-Z]{3}$`)

// NewSKU returns a SKU with all units available, or an ErrInvalid that names the first argument that breaks a rule.
func NewSKU(name string, price Money, units int64, now time.Time) (SKU, error) {
	switch {
	case name == "":
		return SKU{}, fmt.Errorf("%w: sku is missing: want 1 to 64 of a-z, 0-9, '.', '_', '-'", ErrInvalid)
	case !ValidName(name):
		return SKU{}, fmt.Errorf("%w: sku %.80q: want 1 to 64 of a-z, 0-9, '.', '_', '-', starting with a letter or digit", ErrInvalid, name)
	case price.Minor < 0 || price.Minor > MaxPrice:
		return SKU{}, fmt.Errorf("%w: sku %q: price: want 0 to %d minor units", ErrInvalid, name, int64(MaxPrice))
	case !ValidCurrency(price.Currency):
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

// ValidName reports whether a SKU may be called name: 1 to 64 small letters, digits, '.', '_' and '-', the first a
// letter or a digit.
func ValidName(name string) bool {
	for i := range len(name) { // a regular expression would be measurably slower
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// CheckLimit returns an ErrInvalid if perBuyer cannot be a SKU's LimitPerBuyer.
func CheckLimit(perBuyer int64) error {
	if perBuyer < 0 || perBuyer > MaxUnits {
		return fmt.Errorf("%w: limit_per_buyer: want 0, for none, to %d", ErrInvalid, int64(MaxUnits))
	}
	return nil
}

// Money is an amount in the minor unit of its currency (cents for EUR).
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"` // ISO 4217, three capital letters
}
