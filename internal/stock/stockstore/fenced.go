package stockstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// fenced is conditional with one more comparison, beside that of the terms: the row must
// not have been written under this fence or a higher one. A buyer whose lease passed on to
// somebody else while it slept is caught here, in the database, whatever the
// lock's store believes. See "How to do distributed locking", M. Kleppmann,
// 2016.
func fenced(tx *gorm.DB, t stock.Take) error {
	row := tx.Model(&skuRow{}).Where("name = ? AND available >= ? AND fence < ?", t.SKU, t.Units, t.Fence)
	if t.Terms != nil {
		row = row.Where("price_minor = ? AND currency = ? AND limit_per_buyer = ?", t.Terms.Price.Minor, t.Terms.Price.Currency, t.Terms.LimitPerBuyer)
	}
	taken := row.Updates(map[string]any{
		"available": gorm.Expr("available - ?", t.Units),
		"reserved":  gorm.Expr("reserved + ?", t.Units),
		"fence":     t.Fence,
	})
	if taken.Error != nil {
		return fmt.Errorf("take units of %q: %w", t.SKU, taken.Error)
	}
	if taken.RowsAffected == 0 {
		return refusal(tx, t, stock.Fenced)
	}
	return nil
}
