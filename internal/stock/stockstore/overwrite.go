package stockstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// overwrite is WRONG, and is how it is usually written: look whether there is
// enough, subtract, save. What it saves was computed from a read that may be
// long out of date. Of two buyers who read 1, each saves 0: two orders, one
// unit. The transaction does not help, and neither does the CHECK constraint:
// the number never falls below zero.
func overwrite(tx *gorm.DB, t stock.Take) error {
	level := t.Seen
	if level.Available < t.Units {
		return stock.ErrSoldOut
	}
	level.Available -= t.Units
	level.Reserved += t.Units

	saved := tx.Model(&skuRow{}).Where("name = ?", t.SKU).
		Updates(map[string]any{"available": level.Available, "reserved": level.Reserved})
	if saved.Error != nil {
		return fmt.Errorf("overwrite stock of %q: %w", t.SKU, saved.Error)
	}
	if saved.RowsAffected == 0 {
		return stock.ErrUnknownSKU
	}
	return nil
}
