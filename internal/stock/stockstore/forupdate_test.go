package stockstore_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "ForUpdate reads the row and locks it until the transaction ends": a buyer who
// comes while another thinks waits, and then sees what is left.
func TestTake_forUpdateKeepsOthersWaiting(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		if !kind.Server {
			t.Skip("SQLite: no other writer while a transaction runs")
		}
		db := kind.New(t, "").Migrated(t)
		s := withMugs(t, db, 1)
		second := make(chan error, 1)
		err := take(t, db, stock.ForUpdate, stock.Take{SKU: mug, Units: 1, Think: func() error {
			impatient := store.InTx(t.Context(), db, func(tx *gorm.DB) error {
				return tx.Exec("SELECT * FROM skus WHERE name = ? FOR UPDATE NOWAIT", mug).Error
			})
			if impatient == nil {
				t.Error("the row is free while somebody thinks about it")
			}
			go func() { second <- take(t, db, stock.ForUpdate, stock.Take{SKU: mug, Units: 1}) }()
			return nil
		}})
		if err != nil {
			t.Errorf("first buyer: %v", err)
		}
		if err := <-second; !errors.Is(err, stock.ErrSoldOut) {
			t.Errorf("second buyer: got %v, want ErrSoldOut", err)
		}
		if got, want := read(t, s, mug).Level, level(1, 0, 1); got != want {
			t.Errorf("level: got %+v, want %+v", got, want)
		}
	})
}

// "Its error is Take's", and nothing was moved.
func TestTake_forUpdateThinksInVain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 1)
		interrupted := errors.New("interrupted")
		err := take(t, db, stock.ForUpdate, stock.Take{SKU: mug, Units: 1, Think: func() error { return interrupted }})
		if !errors.Is(err, interrupted) {
			t.Errorf("got %v, want the error of Think", err)
		}
		if got, want := read(t, s, mug).Level, level(1, 1, 0); got != want {
			t.Errorf("level: got %+v, want %+v", got, want)
		}
	})
}
