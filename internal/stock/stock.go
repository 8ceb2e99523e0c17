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
)

// Level says where the units of a SKU are.
type Level struct {
	Supplied  int64 `json:"supplied"`  // units ever received
	Available int64 `json:"available"` // free to buy
	Reserved  int64 `json:"reserved"`  // held by pending orders
	Sold      int64 `json:"sold"`      // paid for
}

// SKU is one thing for sale. Its JSON is what the API shows.
type SKU struct {
	Name  string `json:"sku"`
	Price Money  `json:"price"`
	Level
	LimitPerBuyer int64     `json:"limit_per_buyer,omitempty"` // units that a buyer may have in pending and paid orders; 0 for no limit
	Fence         int64     `json:"-"`                         // the highest fence under which the row was written; 0 for none
	CreatedAt     time.Time `json:"-"`
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
	return SKU{Name: name, Price: price, Level: Supply.Change(units), CreatedAt: now.UTC()}, nil
}

// ValidName reports whether a SKU may be called name: 1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or digit.
func ValidName(name string) bool { return nameRule.MatchString(name) }

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckLimit returns an ErrInvalid if perBuyer cannot be a SKU's LimitPerBuyer.
func CheckLimit(perBuyer int64) error {
	if perBuyer < 0 || perBuyer > MaxUnits {
		return fmt.Errorf("%w: limit_per_buyer: want 1 to %d, or 0 for no limit", ErrInvalid, int64(MaxUnits))
	}
	return nil
}

// Money is an amount in the minor unit of its currency (cents for EUR).
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"` // ISO 4217, three capital letters
}

// Kind says why units moved.
type Kind string

// The kinds of movements.
const (
	Supply  Kind = "supply"  // new units come in: Supplied and Available grow
	Reserve Kind = "reserve" // an order holds units: from Available to Reserved
	Sell    Kind = "sell"    // a payment ends the reservation: from Reserved to Sold
	Release Kind = "release" // the reservation ends without one: from Reserved back to Available
)

// Movement is one row of the append-only ledger: a change of a SKU's level. Its JSON is what the API shows.
type Movement struct {
	ID      string    `json:"id"` // UUIDv7
	SKU     string    `json:"-"`
	Kind    Kind      `json:"kind"`
	OrderID string    `json:"order_id,omitempty"` // empty for a supply
	Level             // added to each count of the SKU; negative where units leave
	Fence   int64     `json:"fence"`      // the fence that the database accepted; 0 if it compared none
	At      time.Time `json:"created_at"` // UTC
}

// Change returns the numbers that a movement of this kind adds to a level.
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

// TakeMode is a way to take units of a SKU while other buyers take some.
type TakeMode string

// The modes, of which Overwrite is wrong unless a lock guards the row.
const (
	Overwrite   TakeMode = "overwrite"   // writes the level of an earlier read minus the units: the lost update
	Conditional TakeMode = "conditional" // subtracts in the database, if enough units are available
	Fenced      TakeMode = "fenced"      // like Conditional, if the row was last written under a lower fence
	Optimistic  TakeMode = "optimistic"  // like Overwrite, if the row has not changed since the read
)

// Take asks for units of a SKU to move from available to reserved.
type Take struct {
	SKU   string
	Units int64
	Seen  Level  // for Overwrite and Optimistic: the level read before
	Fence int64  // for Fenced: the fence of the lease held
	Terms *Terms // the terms that the SKU must still have, except for Overwrite; nil for any
}

// Delivery brings in new units of a SKU. The operator chooses its key. A delivery that is sent twice counts once.
type Delivery struct {
	SKU   string
	Key   string // one per delivery and SKU; never forgotten
	Units int64  // 1 to MaxUnits
	At    time.Time
}
