package stockstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// Record appends a movement to the ledger, in the transaction that moves the
// units.
func Record(tx *gorm.DB, m stock.Movement) error {
	row := rowOfMovement(m)
	if err := tx.Create(&row).Error; err != nil {
		return fmt.Errorf("record %s of sku %q: %w", m.Kind, m.SKU, err)
	}
	return nil
}
