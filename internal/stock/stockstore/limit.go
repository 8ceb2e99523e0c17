package stockstore

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// SetLimitPerBuyer sets how many units of a SKU a buyer may have, 0 for any number,
// and returns the SKU as it then is. What buyers have already stays theirs.
// stock.ErrUnknownSKU, or stock.ErrInvalid for what stock.CheckLimit refuses:
// nothing was changed. After stock.ErrUnknownOutcome, the same call again is safe.
func (s *Store) SetLimitPerBuyer(ctx context.Context, sku string, perBuyer int64) (after stock.SKU, err error) {
	if err := stock.CheckLimit(perBuyer); err != nil {
		return stock.SKU{}, fmt.Errorf("sku %q: %w", sku, err)
	}
	err = store.InTx(ctx, s.db, func(tx *gorm.DB) error {
		if err := tx.Model(&skuRow{}).Where("name = ?", sku).Update("limit_per_buyer", perBuyer).Error; err != nil {
			return err
		}
		var row skuRow
		err := tx.Where("name = ?", sku).Take(&row).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return stock.ErrUnknownSKU
		}
		after = row.sku()
		return err
	})
	if err != nil {
		return stock.SKU{}, changeError(err, fmt.Sprintf("limit sku %q per buyer", sku))
	}
	return after, nil
}
