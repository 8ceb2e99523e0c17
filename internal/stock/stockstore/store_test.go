package stockstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store/storetest"
)

func TestStore_SKU(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := stockstore.New(db)
		want := create(t, s, mug, 100)
		if diff := cmp.Diff(want, read(t, s, mug)); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
		if _, err := s.SKU(t.Context(), "hat"); !errors.Is(err, stock.ErrUnknownSKU) {
			t.Errorf("unknown SKU: got %v, want ErrUnknownSKU", err)
		}
	})
}

// "SKUs returns the SKUs with these names as they are now, in their order, and the
// time by the database's clock when they were read."
func TestStore_SKUs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := stockstore.New(db)
		pen, hat, cup := create(t, s, "pen", 1), create(t, s, "hat", 2), create(t, s, "cup", 3)
		for _, want := range [][]stock.SKU{{pen}, {pen, hat}, {hat, cup, pen}} {
			var names []string
			for _, sku := range want {
				names = append(names, sku.Name)
			}
			got, now, err := s.SKUs(t.Context(), names)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", names, diff)
			}
			if off := time.Since(now).Abs(); off > time.Minute || now.Location() != time.UTC {
				t.Errorf("read at %v, want now, in UTC", now)
			}
		}
		for _, names := range [][]string{{"mug"}, {"hat", "mug"}, {"mug", "hat", "nothing"}, {"PEN", "mug"}} {
			_, _, err := s.SKUs(t.Context(), names)
			first := names[slices.IndexFunc(names, func(name string) bool { return name != "hat" })]
			if !errors.Is(err, stock.ErrUnknownSKU) || !strings.Contains(err.Error(), `"`+first+`"`) {
				t.Errorf("%v: got %v, want an ErrUnknownSKU that names %s", names, err, first)
			}
		}
	})
}

// "ErrBusy means that the database does not answer now", also to those who only read.
func TestStore_readFromLostDatabase(t *testing.T) {
	t.Parallel()
	db := storetest.Kinds()[0].New(t, "").Migrated(t)
	s := stockstore.New(db)
	create(t, s, mug, 1)
	storetest.Lose(t, db)
	if _, err := s.SKU(t.Context(), mug); !errors.Is(err, stock.ErrBusy) {
		t.Errorf("SKU: got %v, want ErrBusy", err)
	}
	if _, _, err := s.SKUs(t.Context(), []string{mug}); !errors.Is(err, stock.ErrBusy) {
		t.Errorf("SKUs: got %v, want ErrBusy", err)
	}
	if _, err := s.List(t.Context(), "", 10); !errors.Is(err, stock.ErrBusy) {
		t.Errorf("List: got %v, want ErrBusy", err)
	}
	if _, err := s.Movements(t.Context(), mug, "", 10); !errors.Is(err, stock.ErrBusy) {
		t.Errorf("Movements: got %v, want ErrBusy", err)
	}
}

// "List returns at most limit SKUs whose names sort after the given one, in the
// order of their names."
func TestStore_List(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := stockstore.New(db)
		for _, name := range []string{"hat", "a.1", "mug", "a-1", "a_1"} {
			create(t, s, name, 1)
		}
		for _, c := range []struct {
			after string
			limit int
			want  []string
		}{
			{"", 10, []string{"a-1", "a.1", "a_1", "hat", "mug"}}, // by bytes: '-' < '.' < '_'
			{"", 2, []string{"a-1", "a.1"}},
			{"a.1", 2, []string{"a_1", "hat"}},
			{"b", 10, []string{"hat", "mug"}},
			{"mug", 10, []string{}},
		} {
			skus, err := s.List(t.Context(), c.after, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			names := []string{}
			for _, sku := range skus {
				names = append(names, sku.Name)
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Errorf("after %q, at most %d (-want +got):\n%s", c.after, c.limit, diff)
			}
		}
	})
}

// "Create adds a SKU and the supply of its units to the ledger, both or
// neither. A name that is there already is stock.ErrExists."
func TestStore_Create(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 100)
		again, err := stock.NewSKU(mug, stock.Money{Minor: 1, Currency: "USD"}, 7, created)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context(), again); !errors.Is(err, stock.ErrExists) {
			t.Errorf("second of a name: got %v, want ErrExists", err)
		}
		if got, want := read(t, s, mug).Level, level(100, 100, 0); got != want {
			t.Errorf("level: got %+v, want %+v", got, want)
		}
		var ledger []stock.Level
		if err := db.Table("movements").Where("sku = ? AND kind = 'supply' AND order_id IS NULL", mug).Find(&ledger).Error; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]stock.Level{level(100, 100, 0)}, ledger); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	})
}
