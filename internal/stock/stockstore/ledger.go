package stockstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// Record appends movements to the ledger, in the transaction that moves the
// units.
func Record(tx *gorm.DB, movements ...stock.Movement) error {
	rows := make([]movementRow, len(movements))
	for i, m := range movements {
		rows[i] = rowOfMovement(m)
	}
	if err := tx.Create(&rows).Error; err != nil {
		return fmt.Errorf("record movements: %w", err)
	}
	return nil
}
