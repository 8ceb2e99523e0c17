package stockstore_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store"
)

const mug = "mug"

// created has more than whole seconds, so that a column that cuts them shows.
var created = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)

// withMugs adds the SKU "mug" with so many units.
func withMugs(t *testing.T, db *gorm.DB, units int64) *stockstore.Store {
	t.Helper()
	s := stockstore.New(db)
	create(t, s, mug, units)
	return s
}

func create(t *testing.T, s *stockstore.Store, name string, units int64) stock.SKU {
	t.Helper()
	sku, err := stock.NewSKU(name, stock.Money{Minor: 1250, Currency: "EUR"}, units, created)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), sku); err != nil {
		t.Fatalf("create %q: %v", name, err)
	}
	return sku
}

func read(t *testing.T, s *stockstore.Store, name string) stock.SKU {
	t.Helper()
	sku, err := s.SKU(t.Context(), name)
	if err != nil {
		t.Fatalf("read %q: %v", name, err)
	}
	return sku
}

// take runs stockstore.Take in a transaction of its own.
func take(t *testing.T, db *gorm.DB, way stock.Way, wish stock.Take) error {
	t.Helper()
	return store.InTx(t.Context(), db, func(tx *gorm.DB) error {
		return stockstore.Take(tx, way, wish)
	})
}

func level(supplied, available, reserved int64) stock.Level {
	return stock.Level{Supplied: supplied, Available: available, Reserved: reserved}
}
