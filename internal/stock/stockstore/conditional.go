package stockstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// conditional compares and subtracts in one statement. The database locks the
// row for it and sees its latest committed numbers, so that no two buyers
// subtract from the same ones.
func conditional(tx *gorm.DB, t stock.Take) error {
	taken := tx.Model(&skuRow{}).
		Where("name = ? AND available >= ?", t.SKU, t.Units).
		Updates(map[string]any{
			"available": gorm.Expr("available - ?", t.Units),
			"reserved":  gorm.Expr("reserved + ?", t.Units),
		})
	if taken.Error != nil {
		return fmt.Errorf("take units of %q: %w", t.SKU, taken.Error)
	}
	if taken.RowsAffected == 0 {
		return refusal(tx, t, stock.Conditional)
	}
	return nil
}
