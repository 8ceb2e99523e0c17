package stock

import (
	"fmt"
	"time"
)

// Delivery brings new units of a SKU in. Its key, chosen by whoever books it,
// keeps a delivery that is told twice from counting twice.
type Delivery struct {
	SKU   string
	Key   string // one per delivery and SKU; never forgotten
	Units int64
	At    time.Time
}

// NewDelivery checks the units and returns a delivery. The error is an
// ErrInvalid. How many units a SKU can have in all is checked when it is booked.
func NewDelivery(sku, key string, units int64, now time.Time) (Delivery, error) {
	if units < 1 || units > MaxUnits {
		return Delivery{}, fmt.Errorf("%w: sku %q: units: want 1 to %d", ErrInvalid, sku, int64(MaxUnits))
	}
	return Delivery{SKU: sku, Key: key, Units: units, At: now.UTC()}, nil
}
