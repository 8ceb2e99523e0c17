package stockstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// Take moves units of a SKU from available to reserved, in the transaction tx.
// stock.ErrSoldOut, stock.ErrStaleFence, stock.ErrChanged or stock.ErrUnknownSKU:
// nothing was moved, and the transaction can go on.
func Take(tx *gorm.DB, way stock.Way, t stock.Take) error {
	if t.Units < 1 {
		return fmt.Errorf("%w: take %d units of sku %q", stock.ErrInvalid, t.Units, t.SKU)
	}
	switch way {
	case stock.Overwrite:
		return overwrite(tx, t)
	case stock.Conditional:
		return conditional(tx, t)
	case stock.Fenced:
		return fenced(tx, t)
	case stock.ForUpdate:
		return forUpdate(tx, t)
	case stock.Optimistic:
		return optimistic(tx, t)
	}
	return fmt.Errorf("%w: way %q to take units of sku %q", stock.ErrInvalid, way, t.SKU)
}
