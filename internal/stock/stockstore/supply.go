package stockstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// Supply books a delivery: the units and their movement, both or neither. It
// returns the SKU as it then is. The same delivery again changes nothing and
// returns what the first returned, with replayed true; with another number of
// units it is stock.ErrKeyReused. A SKU that nobody created is
// stock.ErrUnknownSKU, one that would have more than stock.MaxUnits is
// stock.ErrInvalid. After stock.ErrUnknownOutcome, the same call again tells.
func (s *Store) Supply(ctx context.Context, d stock.Delivery) (after stock.SKU, replayed bool, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return stock.SKU{}, false, fmt.Errorf("new movement id: %w", err)
	}
	err = store.InTx(ctx, s.db, func(tx *gorm.DB) error {
		after, replayed, err = supply(tx, d, id.String())
		return err
	})
	if err != nil {
		return stock.SKU{}, false, changeError(err, fmt.Sprintf("supply sku %q", d.SKU))
	}
	return after, replayed, nil
}

// supply claims the key first: a twin that still runs holds that row, and the
// statement waits for it.
func supply(tx *gorm.DB, d stock.Delivery, id string) (after stock.SKU, replayed bool, err error) {
	booked := deliveryRow{SKU: d.SKU, IdempotencyKey: d.Key, MovementID: id, Units: d.Units}
	err = tx.Create(&booked).Error
	if store.Classify(err) == store.Duplicate {
		after, err = replay(tx, d)
		return after, true, err
	}
	if err != nil {
		return stock.SKU{}, false, fmt.Errorf("claim key: %w", err)
	}
	if after, err = addUnits(tx, d); err != nil {
		return stock.SKU{}, false, err
	}
	err = tx.Model(&booked).Updates(map[string]any{
		"supplied": after.Level.Supplied, "available": after.Level.Available,
		"reserved": after.Level.Reserved, "sold": after.Level.Sold,
	}).Error
	if err != nil {
		return stock.SKU{}, false, fmt.Errorf("keep the answer: %w", err)
	}
	return after, false, Record(tx, stock.Movement{
		ID:     id,
		SKU:    d.SKU,
		Kind:   stock.Supply,
		Change: stock.Level{Supplied: d.Units, Available: d.Units},
		At:     d.At,
	})
}

// addUnits compares and counts in one statement, as conditional does. The row
// stays locked, so that what is read after it is what this delivery made.
func addUnits(tx *gorm.DB, d stock.Delivery) (stock.SKU, error) {
	added := tx.Model(&skuRow{}).
		Where("name = ? AND supplied <= ?", d.SKU, stock.MaxUnits-d.Units).
		Updates(map[string]any{
			"supplied":  gorm.Expr("supplied + ?", d.Units),
			"available": gorm.Expr("available + ?", d.Units),
		})
	if added.Error != nil {
		return stock.SKU{}, added.Error
	}
	var row skuRow
	err := tx.Where("name = ?", d.SKU).Take(&row).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return stock.SKU{}, stock.ErrUnknownSKU
	case err != nil:
		return stock.SKU{}, err
	case added.RowsAffected == 0:
		return stock.SKU{}, fmt.Errorf("%w: sku %q: units: %d were supplied, and at most %d can be in all",
			stock.ErrInvalid, d.SKU, row.Supplied, int64(stock.MaxUnits))
	}
	return row.sku(), nil
}

// replay returns what the first delivery with this key was told.
func replay(tx *gorm.DB, d stock.Delivery) (stock.SKU, error) {
	var first deliveryRow
	if err := tx.Where("sku = ? AND idempotency_key = ?", d.SKU, d.Key).Take(&first).Error; err != nil {
		return stock.SKU{}, fmt.Errorf("read what the key was used for: %w", err)
	}
	if first.Units != d.Units {
		return stock.SKU{}, stock.ErrKeyReused
	}
	var row skuRow
	if err := tx.Where("name = ?", d.SKU).Take(&row).Error; err != nil {
		return stock.SKU{}, err
	}
	then := row.sku()
	then.Level = stock.Level{Supplied: first.Supplied, Available: first.Available, Reserved: first.Reserved, Sold: first.Sold}
	return then, nil
}
