package orderstore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// "At most limit of the buyer's orders, the latest first, those before the one
// with the id before."
func TestStore_OfBuyer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 100, "mug", "hat")
		var anns []order.Order
		for i := range 5 {
			o := draft("ann", fmt.Sprint("k", i), "mug", "hat")
			s.mustPlace(t, o, draft("bob", fmt.Sprint("k", i), "hat"), draft("Ann", fmt.Sprint("k", i), "hat"))
			anns = append(anns, o)
		}
		slices.Reverse(anns)
		for _, c := range []struct {
			before string
			limit  int
			want   []order.Order
		}{
			{"", 100, anns},
			{"", 5, anns},
			{"", 2, anns[:2]},
			{anns[1].ID, 2, anns[2:4]},
			{anns[3].ID, 2, anns[4:]},
			{anns[4].ID, 2, []order.Order{}},
			{newID(), 1, anns[:1]}, // of no order
		} {
			got, err := s.orders.OfBuyer(t.Context(), "ann", c.before, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%d before %q (-want +got):\n%s", c.limit, c.before, diff)
			}
		}
		if got, err := s.orders.OfBuyer(t.Context(), "cid", "", 10); err != nil || len(got) > 0 {
			t.Errorf("got %v, %v, want no orders of a buyer who has none", got, err)
		}
	})
}

// A page takes two statements, however many orders it has.
func TestStore_pagesReadLinesAtOnce(t *testing.T) {
	t.Parallel()
	db := storetest.Kinds()[0].New(t, "").Migrated(t)
	s := newShop(t, db, 100, "mug", "hat")
	for i := range 10 {
		o := draft("ann", fmt.Sprint("k", i), "mug", "hat")
		o.ExpiresAt = placedAt // due
		s.mustPlace(t, o)
	}
	queries := 0
	if err := db.Callback().Query().Before("gorm:query").Register("count", func(*gorm.DB) { queries++ }); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() ([]order.Order, error){
		"of buyer": func() ([]order.Order, error) { return s.orders.OfBuyer(t.Context(), "ann", "", 100) },
		"due":      func() ([]order.Order, error) { return s.orders.Due(t.Context(), order.Order{}, 100) },
	} {
		queries = 0
		orders, err := read()
		if err != nil || len(orders) != 10 || queries != 2 {
			t.Errorf("%s: got %d orders with %d queries, %v, want 10 with 2", name, len(orders), queries, err)
		}
		for _, o := range orders {
			if len(o.Lines) != 2 || o.Lines[0].SKU != "mug" || o.Lines[1].SKU != "hat" {
				t.Errorf("%s: got lines %+v, want mug and hat, as they were written", name, o.Lines)
			}
		}
	}
}
