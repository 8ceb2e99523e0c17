package stockstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// optimistic is overwrite with a compare-and-swap: it saves what it computed if
// the row still is what it was computed from. What is compared is the whole level
// and not a version number. A version is exact only while every writer of the row
// raises it, and orders that are paid, cancelled or expired, and deliveries, do
// not; comparing the available units alone would take 5 that became 4 and 5 again
// for unchanged, and save a number of reserved units that is out of date. All that
// is saved depends on these four numbers alone: where they are the same again,
// so is what is to be saved, whatever happened between.
func optimistic(tx *gorm.DB, t stock.Take) error {
	seen := t.Seen
	if seen.Available < t.Units {
		return stock.ErrSoldOut
	}
	swapped := tx.Model(&skuRow{}).
		Where("name = ? AND supplied = ? AND available = ? AND reserved = ? AND sold = ?",
			t.SKU, seen.Supplied, seen.Available, seen.Reserved, seen.Sold).
		Updates(map[string]any{"available": seen.Available - t.Units, "reserved": seen.Reserved + t.Units})
	if swapped.Error != nil {
		return fmt.Errorf("swap stock of %q: %w", t.SKU, swapped.Error)
	}
	if swapped.RowsAffected == 0 {
		return stock.ErrChanged
	}
	return nil
}
