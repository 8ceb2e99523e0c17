package stockstore_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store/storetest"
)

// "Optimistic writes back what an earlier read minus the units gives, if the row
// still is what was read, and else refuses with ErrChanged."
func TestTake_optimistic(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		seen := read(t, s, mug).Level
		if err := take(t, db, stock.Optimistic, stock.Take{SKU: mug, Units: 3, Seen: seen}); err != nil {
			t.Fatalf("first buyer: %v", err)
		}
		after := read(t, s, mug)
		if want := level(10, 7, 3); after.Level != want {
			t.Errorf("level: got %+v, want %+v", after.Level, want)
		}
		if err := take(t, db, stock.Optimistic, stock.Take{SKU: mug, Units: 3, Seen: seen}); !errors.Is(err, stock.ErrChanged) {
			t.Errorf("second buyer: got %v, want ErrChanged", err)
		}
		if got := read(t, s, mug); got != after {
			t.Errorf("row after a refusal: got %+v, want %+v", got, after)
		}
	})
}

// "Comparing the available units alone would take 5 that became 4 and 5 again for
// unchanged": one was sold and one delivered between read and write.
func TestTake_optimisticSeesAvailableComeBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 5)
		seen := read(t, s, mug).Level
		if err := take(t, db, stock.Conditional, stock.Take{SKU: mug, Units: 1}); err != nil {
			t.Fatal(err)
		}
		if err := db.Exec("UPDATE skus SET supplied = supplied + 1, available = available + 1 WHERE name = ?", mug).Error; err != nil {
			t.Fatal(err)
		}
		between := level(6, 5, 1)
		if got := read(t, s, mug).Level; got != between || got.Available != seen.Available {
			t.Fatalf("level: got %+v, want %+v and the units available that were seen", got, between)
		}
		if err := take(t, db, stock.Optimistic, stock.Take{SKU: mug, Units: 1, Seen: seen}); !errors.Is(err, stock.ErrChanged) {
			t.Errorf("got %v, want ErrChanged", err)
		}
		if got := read(t, s, mug).Level; got != between {
			t.Errorf("level after a refusal: got %+v, want %+v", got, between)
		}
	})
}

// A crowd that reads again after each ErrChanged sells all there is, once.
func TestTake_optimisticCrowd(t *testing.T) {
	t.Parallel()
	const buyers, units = 24, 10
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, units)
		var sold atomic.Int64
		var crowd sync.WaitGroup
		for range buyers {
			crowd.Go(func() {
				err := stock.ErrChanged
				for errors.Is(err, stock.ErrChanged) {
					err = buyOne(t, s, db)
				}
				switch {
				case err == nil:
					sold.Add(1)
				case !errors.Is(err, stock.ErrSoldOut):
					t.Error(err)
				}
			})
		}
		crowd.Wait()
		if got, want := read(t, s, mug).Level, level(units, 0, units); got != want || sold.Load() != units {
			t.Errorf("sold %d, level %+v, want %d and %+v", sold.Load(), got, units, want)
		}
	})
}

func buyOne(t *testing.T, s *stockstore.Store, db *gorm.DB) error {
	sku, err := s.SKU(t.Context(), mug)
	if err != nil {
		return err
	}
	return take(t, db, stock.Optimistic, stock.Take{SKU: mug, Units: 1, Seen: sku.Level})
}
