package stock_test

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/stock"
)

// "NewDelivery checks the units and returns a delivery."
func TestNewDelivery(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("east", 3600))
	for units, ok := range map[int64]bool{-1: false, 0: false, 1: true, stock.MaxUnits: true, stock.MaxUnits + 1: false} {
		got, err := stock.NewDelivery("mug", "key-1", units, now)
		if !ok {
			if !errors.Is(err, stock.ErrInvalid) {
				t.Errorf("%d units: got %v, want ErrInvalid", units, err)
			}
			continue
		}
		if want := (stock.Delivery{SKU: "mug", Key: "key-1", Units: units, At: now.UTC()}); err != nil || got != want {
			t.Errorf("%d units: got %+v, %v, want %+v", units, got, err, want)
		}
	}
}
