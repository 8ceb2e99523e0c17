package stockstore_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// safeWays need no read before.
var safeWays = []stock.Way{stock.Conditional, stock.Fenced, stock.ForUpdate}

// "Overwrite writes back what an earlier read minus the units gives. Two buyers
// that read the same number sell the same units: the lost update."
func TestTake_overwriteLosesAnUpdate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		seen := read(t, s, mug).Level
		for buyer := range 2 {
			if err := take(t, db, stock.Overwrite, stock.Take{SKU: mug, Units: 10, Seen: seen}); err != nil {
				t.Fatalf("buyer %d: %v", buyer+1, err)
			}
		}
		// 20 units were sold, and the row knows of 10.
		if got, want := read(t, s, mug).Level, level(10, 0, 10); got != want {
			t.Errorf("level: got %+v, want %+v", got, want)
		}
	})
}

// "Fenced, Conditional and ForUpdate cannot oversell": the second buyer who read the same
// number is refused.
func TestTake_safeWaysDoNotLoseAnUpdate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for _, way := range safeWays {
			name := string(way)
			s := stockstore.New(db)
			create(t, s, name, 10)
			seen := read(t, s, name).Level
			if err := take(t, db, way, stock.Take{SKU: name, Units: 10, Seen: seen, Fence: 1}); err != nil {
				t.Fatalf("%s: first buyer: %v", way, err)
			}
			err := take(t, db, way, stock.Take{SKU: name, Units: 10, Seen: seen, Fence: 2})
			if !errors.Is(err, stock.ErrSoldOut) {
				t.Errorf("%s: second buyer: got %v, want ErrSoldOut", way, err)
			}
		}
	})
}

// "Fenced, Conditional and ForUpdate cannot oversell, whatever else goes wrong."
func TestTake_crowd(t *testing.T) {
	t.Parallel()
	const buyers, units = 64, 10
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for _, way := range safeWays {
			name := string(way)
			s := stockstore.New(db)
			create(t, s, name, units)
			var fence, sold, refused atomic.Int64
			var crowd sync.WaitGroup
			for range buyers {
				crowd.Go(func() {
					err := take(t, db, way, stock.Take{SKU: name, Units: 1, Fence: fence.Add(1)})
					switch {
					case err == nil:
						sold.Add(1)
					// Without a lock around it, a later fence overtakes an earlier one.
					case errors.Is(err, stock.ErrSoldOut), errors.Is(err, stock.ErrStaleFence):
						refused.Add(1)
					default:
						t.Errorf("%s: %v", way, err)
					}
				})
			}
			crowd.Wait()
			got := read(t, s, name).Level
			if want := level(units, units-sold.Load(), sold.Load()); got != want {
				t.Errorf("%s: after %d sales: got %+v, want %+v", way, sold.Load(), got, want)
			}
			if way != stock.Fenced && sold.Load() != units {
				t.Errorf("%s: sold %d, want %d", way, sold.Load(), units)
			}
			if sold.Load()+refused.Load() != buyers {
				t.Errorf("%s: %d sold + %d refused, want %d", way, sold.Load(), refused.Load(), buyers)
			}
		}
	})
}

// "ErrStaleFence means that the stock row was already written under the same or
// a higher fence."
func TestTake_staleFence(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		if err := take(t, db, stock.Fenced, stock.Take{SKU: mug, Units: 1, Fence: 5}); err != nil {
			t.Fatal(err)
		}
		before := read(t, s, mug)
		if before.Fence != 5 {
			t.Errorf("fence: got %d, want 5", before.Fence)
		}
		for _, fence := range []int64{0, 4, 5} {
			err := take(t, db, stock.Fenced, stock.Take{SKU: mug, Units: 1, Fence: fence})
			if !errors.Is(err, stock.ErrStaleFence) {
				t.Errorf("fence %d after 5: got %v, want ErrStaleFence", fence, err)
			}
		}
		// Even where there is not enough: who has no lease learns nothing of the stock.
		if err := take(t, db, stock.Fenced, stock.Take{SKU: mug, Units: 11, Fence: 5}); !errors.Is(err, stock.ErrStaleFence) {
			t.Errorf("too many under a stale fence: got %v, want ErrStaleFence", err)
		}
		if after := read(t, s, mug); after != before {
			t.Errorf("row: got %+v, want %+v", after, before)
		}
	})
}

// "Terms, for Fenced, are those that the SKU must still be sold at, or the take is
// refused with ErrChanged": after a stale fence, and before units that are missing.
func TestTake_terms(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		if err := take(t, db, stock.Fenced, stock.Take{SKU: mug, Units: 1, Fence: 5}); err != nil {
			t.Fatal(err)
		}
		before := read(t, s, mug)
		same, price, currency, limit := before.Terms(), before.Terms(), before.Terms(), before.Terms()
		price.Price.Minor++
		currency.Price.Currency = "CHF"
		limit.LimitPerBuyer = 1
		for i, c := range []struct {
			terms stock.Terms
			units int64
			fence int64
			want  error
		}{
			{price, 1, 6, stock.ErrChanged}, {currency, 1, 6, stock.ErrChanged}, {limit, 1, 6, stock.ErrChanged},
			{price, 10, 6, stock.ErrChanged}, {price, 1, 5, stock.ErrStaleFence}, {same, 10, 6, stock.ErrSoldOut},
		} {
			err := take(t, db, stock.Fenced, stock.Take{SKU: mug, Units: c.units, Fence: c.fence, Terms: &c.terms})
			if !errors.Is(err, c.want) {
				t.Errorf("%d: got %v, want %v", i, err, c.want)
			}
		}
		if after := read(t, s, mug); after != before {
			t.Errorf("row: got %+v, want %+v", after, before)
		}
		if err := take(t, db, stock.Fenced, stock.Take{SKU: mug, Units: 9, Fence: 6, Terms: &same}); err != nil {
			t.Errorf("as they are: %v", err)
		}
	})
}

// "stock.ErrSoldOut, stock.ErrStaleFence or stock.ErrUnknownSKU: nothing was
// moved, and the transaction can go on."
func TestTake_refusals(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 3)
		before := read(t, s, mug)
		for _, way := range []stock.Way{stock.Overwrite, stock.Conditional, stock.Fenced, stock.ForUpdate, stock.Optimistic} {
			for _, c := range []struct {
				wish stock.Take
				want error
			}{
				{stock.Take{SKU: mug, Units: 4, Fence: 9, Seen: before.Level}, stock.ErrSoldOut},
				{stock.Take{SKU: "hat", Units: 1, Fence: 9, Seen: before.Level}, stock.ErrUnknownSKU},
				{stock.Take{SKU: mug, Units: 0, Fence: 9, Seen: before.Level}, stock.ErrInvalid},
				{stock.Take{SKU: mug, Units: -1, Fence: 9, Seen: before.Level}, stock.ErrInvalid},
			} {
				if way == stock.Optimistic && errors.Is(c.want, stock.ErrUnknownSKU) {
					c.want = stock.ErrChanged // "not what was read before", which is all it compares
				}
				err := store.InTx(t.Context(), db, func(tx *gorm.DB) error {
					if err := stockstore.Take(tx, way, c.wish); !errors.Is(err, c.want) {
						t.Errorf("%s %+v: got %v, want %v", way, c.wish, err, c.want)
					}
					return nil
				})
				if err != nil {
					t.Errorf("%s %+v: commit: %v", way, c.wish, err)
				}
			}
		}
		if err := take(t, db, "somehow", stock.Take{SKU: mug, Units: 1}); !errors.Is(err, stock.ErrInvalid) {
			t.Errorf("unknown way: got %v, want ErrInvalid", err)
		}
		if after := read(t, s, mug); after != before {
			t.Errorf("row: got %+v, want %+v", after, before)
		}
	})
}

// "A plain SELECT in MySQL answers from the snapshot that the transaction's
// first plain SELECT took": the reason for a refusal must be the row's present.
func TestTake_refusalSeesThePresent(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		db := kind.New(t, "").Migrated(t)
		s := withMugs(t, db, 1)
		err := store.InTx(t.Context(), db, func(tx *gorm.DB) error {
			var available int64
			if err := tx.Raw("SELECT available FROM skus WHERE name = ?", mug).Scan(&available).Error; err != nil {
				return err
			}
			if err := take(t, db, stock.Fenced, stock.Take{SKU: mug, Units: 1, Fence: 7}); err != nil { // another buyer
				return err
			}
			return stockstore.Take(tx, stock.Fenced, stock.Take{SKU: mug, Units: 1, Fence: 7})
		})
		if !errors.Is(err, stock.ErrStaleFence) {
			t.Errorf("got %v, want ErrStaleFence", err)
		}
		if got, want := read(t, s, mug).Level, level(1, 0, 1); got != want {
			t.Errorf("level: got %+v, want %+v", got, want)
		}
	})
}

// "The last line of defence": no bug of ours can write a count below zero.
func TestSchema_countsAreNeverNegative(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		withMugs(t, db, 1)
		for _, column := range []string{"supplied", "available", "reserved", "sold", "price_minor"} {
			err := db.Exec("UPDATE skus SET " + column + " = -1").Error
			if got := store.Classify(err); got != store.Other {
				t.Errorf("%s = -1: got fault %q (%v), want a refusal", column, got, err)
			}
		}
	})
}
