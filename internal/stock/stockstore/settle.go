package stockstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// Settle ends a reservation of units, in the transaction that ends the order's:
// stock.Sell or stock.Release. As in conditional, the database compares and
// counts in one statement, so that no unit is moved that is not reserved. The
// fence stays: whether the order may move its units is decided by its own row.
func Settle(tx *gorm.DB, kind stock.Kind, sku string, units int64) error {
	if units < 1 || kind != stock.Sell && kind != stock.Release {
		return fmt.Errorf("%w: %s %d units of sku %q", stock.ErrInvalid, kind, units, sku)
	}
	change := stock.Settle(kind, units)
	settled := tx.Model(&skuRow{}).
		Where("name = ? AND reserved >= ?", sku, units).
		Updates(map[string]any{
			"available": gorm.Expr("available + ?", change.Available),
			"reserved":  gorm.Expr("reserved + ?", change.Reserved),
			"sold":      gorm.Expr("sold + ?", change.Sold),
		})
	if settled.Error != nil {
		return fmt.Errorf("%s units of sku %q: %w", kind, sku, settled.Error)
	}
	if settled.RowsAffected == 0 {
		return fmt.Errorf("%s %d units of sku %q: %w", kind, units, sku, stock.ErrNotReserved)
	}
	return nil
}
