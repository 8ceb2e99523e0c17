package stockstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// Store reads, creates and supplies SKUs. It may be used by many goroutines at once.
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

// SKUs returns the SKUs with these names as they are now, in their order, and the
// time by the database's clock when they were read. stock.ErrUnknownSKU names the
// first that is not there.
func (s *Store) SKUs(ctx context.Context, names []string) (skus []stock.SKU, now time.Time, err error) {
	var rows []struct {
		SKU    skuRow `gorm:"embedded"`
		ReadAt store.Time
	}
	err = s.db.WithContext(ctx).Table("skus").Select("*, "+store.Clock(s.db)+" AS read_at").Where("name IN ?", names).Find(&rows).Error
	if err != nil {
		return nil, time.Time{}, readError(err, fmt.Sprintf("stock of %q", names))
	}
	found := make(map[string]stock.SKU, len(rows))
	for _, row := range rows {
		found[row.SKU.Name], now = row.SKU.sku(), row.ReadAt.Time
	}
	for _, name := range names {
		sku, ok := found[name]
		if !ok {
			return nil, time.Time{}, fmt.Errorf("sku %q: %w", name, stock.ErrUnknownSKU)
		}
		skus = append(skus, sku)
	}
	return skus, now, nil
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

// Create adds a SKU and the supply of its units to the ledger, both or neither.
// A name that is there already is stock.ErrExists, also where an earlier call whose
// outcome was stock.ErrUnknownOutcome has created it.
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
		return changeError(err, fmt.Sprintf("create sku %q", sku.Name))
	}
	return nil
}
