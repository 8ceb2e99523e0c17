package stockstore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "SetLimitPerBuyer sets how many units of a SKU a buyer may have, 0 for any
// number, and returns the SKU as it then is."
func TestStore_SetLimitPerBuyer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		want := read(t, s, mug)
		for _, perBuyer := range []int64{2, 2, stock.MaxUnits, 0} {
			want.LimitPerBuyer = perBuyer
			after, err := s.SetLimitPerBuyer(t.Context(), mug, perBuyer)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("answer for %d (-want +got):\n%s", perBuyer, diff)
			}
			if diff := cmp.Diff(want, read(t, s, mug)); diff != "" {
				t.Errorf("what is there after %d (-want +got):\n%s", perBuyer, diff)
			}
		}
		for _, c := range []struct {
			sku      string
			perBuyer int64
			want     error
		}{
			{"cup", 1, stock.ErrUnknownSKU},
			{mug, -1, stock.ErrInvalid},
			{mug, stock.MaxUnits + 1, stock.ErrInvalid},
		} {
			if _, err := s.SetLimitPerBuyer(t.Context(), c.sku, c.perBuyer); !errors.Is(err, c.want) {
				t.Errorf("%s, %d: got %v, want %v", c.sku, c.perBuyer, err, c.want)
			}
		}
		if got := read(t, s, mug).LimitPerBuyer; got != 0 {
			t.Errorf("got limit %d after refusals, want none", got)
		}

		created := want
		created.Name, created.LimitPerBuyer = "hat", 3
		if err := s.Create(t.Context(), created); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(created, read(t, s, "hat")); diff != "" {
			t.Errorf("created with a limit (-want +got):\n%s", diff)
		}
	})
}
