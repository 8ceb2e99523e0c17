package stockstore

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/shop/internal/stock"
)

// forUpdate is overwrite made right by the database's own lock. From the SELECT
// ... FOR UPDATE until the transaction ends, nobody else writes the row or reads
// it FOR UPDATE, so that what is written was computed from what is there. The
// price: the row, and a connection, are held while this buyer thinks. (SQLite
// leaves the words out: its transaction has been the only writer since it began.)
func forUpdate(tx *gorm.DB, t stock.Take) error {
	var row skuRow
	err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("name = ?", t.SKU).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return stock.ErrUnknownSKU
	}
	if err != nil {
		return fmt.Errorf("lock stock of %q: %w", t.SKU, err)
	}
	t.Seen = row.sku().Level
	if t.Think != nil && t.Seen.Available >= t.Units {
		if err := t.Think(); err != nil {
			return err
		}
	}
	return overwrite(tx, t)
}
