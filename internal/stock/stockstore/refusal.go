package stockstore

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/shop/internal/stock"
)

// refusal tells why an update matched no row.
//
// It reads FOR UPDATE. A plain SELECT in MySQL answers from the snapshot that
// the transaction's first plain SELECT took, which may be older than the row
// that the update has just refused: it would show units that are gone. A
// locking read sees the row as the update saw it; InnoDB has it locked already.
// (SQLite leaves the words out: its transaction has been the only writer since
// it began.)
//
// A stale fence is told first: whoever lost its lease must not tell a buyer anything
// about the stock. Other terms are told before sold out: whoever planned by the old ones
// has to read again anyway.
func refusal(tx *gorm.DB, t stock.Take, way stock.Way) error {
	var row skuRow
	err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("name = ?", t.SKU).Take(&row).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return stock.ErrUnknownSKU
	case err != nil:
		return fmt.Errorf("read stock of %q: %w", t.SKU, err)
	case way == stock.Fenced && row.Fence >= t.Fence:
		return stock.ErrStaleFence
	case t.Terms != nil && row.sku().Terms() != *t.Terms:
		return stock.ErrChanged
	}
	// Fences only grow, so the units were what was missing, at the time of the
	// update. There may be enough by now: READ COMMITTED lets go of a row that an
	// update does not match.
	return stock.ErrSoldOut
}
