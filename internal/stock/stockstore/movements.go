package stockstore

import (
	"context"
	"fmt"

	"example.com/shop/internal/stock"
)

// Movements returns at most limit rows of a SKU's ledger whose ids sort after the
// given one; an empty one begins at the first. Ids sort by the time at which they
// were made, which is a little before the row is there: of changes that happen
// meanwhile, one may come to stand before a row that was returned already. A name
// that no SKU has is stock.ErrUnknownSKU.
func (s *Store) Movements(ctx context.Context, sku, after string, limit int) ([]stock.Movement, error) {
	if _, err := s.SKU(ctx, sku); err != nil {
		return nil, err
	}
	var rows []movementRow
	err := s.db.WithContext(ctx).Where("sku = ? AND id > ?", sku, after).Order("id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, readError(err, fmt.Sprintf("ledger of %q", sku))
	}
	ledger := make([]stock.Movement, len(rows))
	for i, row := range rows {
		ledger[i] = row.movement()
	}
	return ledger, nil
}
