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

// Store reads and creates SKUs. It may be used by many goroutines at once.
type Store struct {
	db *gorm.DB
}

// New returns a Store on a migrated database.
func New(db *gorm.DB) *Store { return &Store{db: db} }

// SKU returns the SKU called name as it is now, or stock.ErrUnknownSKU.
func (s *Store) SKU(ctx context.Context, name string) (stock.SKU, error) {
	var row skuRow
	err := s.db.WithContext(ctx).Where("name = ?", name).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return stock.SKU{}, stock.ErrUnknownSKU
	}
	if err != nil {
		return stock.SKU{}, readError(err, fmt.Sprintf("stock of %q", name))
	}
	return row.sku(), nil
}

// List returns at most limit SKUs whose names sort after the given one, in the
// order of their names. An empty name begins at the first.
func (s *Store) List(ctx context.Context, after string, limit int) ([]stock.SKU, error) {
	var rows []skuRow
	err := s.db.WithContext(ctx).Where("name > ?", after).Order("name").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, readError(err, fmt.Sprintf("stock after %q", after))
	}
	skus := make([]stock.SKU, 0, len(rows))
	for _, row := range rows {
		skus = append(skus, row.sku())
	}
	return skus, nil
}

// readError tells a database that is not there from other errors.
func readError(err error, what string) error {
	if store.Unavailable(err) {
		return fmt.Errorf("%w: read %s: %w", stock.ErrBusy, what, err)
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// Create adds a SKU and the supply of its units to the ledger, both or neither.
// A name that is there already is stock.ErrExists.
func (s *Store) Create(ctx context.Context, sku stock.SKU) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("new movement id: %w", err)
	}
	row := rowOfSKU(sku)
	err = store.InTx(ctx, s.db, func(tx *gorm.DB) error {
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		return Record(tx, stock.Movement{
			ID:     id.String(),
			SKU:    sku.Name,
			Kind:   stock.Supply,
			Change: sku.Level,
			At:     sku.CreatedAt,
		})
	})
	if store.Classify(err) == store.Duplicate {
		return fmt.Errorf("sku %q: %w", sku.Name, stock.ErrExists)
	}
	if err != nil {
		return fmt.Errorf("create sku %q: %w", sku.Name, err)
	}
	return nil
}
