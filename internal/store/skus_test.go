package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// "Create creates SKUs, and adds the supply of their units to the ledger, all or nothing. A name that already exists is
// order.ErrExists."
func TestStore_Create(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := shop{st}
		want := stock.SKU{Name: "mug", Price: price, Level: level(100, 0), LimitPerBuyer: 3, CreatedAt: placedAt}
		testserver.Must(t, s.Create(t.Context(), want))
		again := want
		again.Level = level(7, 0)
		if err := s.Create(t.Context(), again); !errors.Is(err, order.ErrExists) {
			t.Errorf("second of a name: got %v, want ErrExists", err)
		}
		if diff := cmp.Diff(want, s.sku(t, "mug")); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
		if got := s.ledger(t, "mug"); len(got) != 1 || got[0].Level != level(100, 0) || got[0].Kind != stock.Supply || got[0].OrderID != "" {
			t.Errorf("ledger: got %+v, want one supply", got)
		}
		if _, err := s.SKU(t.Context(), "hat"); !errors.Is(err, order.ErrUnknownSKU) {
			t.Errorf("unknown SKU: got %v, want ErrUnknownSKU", err)
		}
	})
}

// "Levels returns the SKUs of these lines. ErrUnknownSKU names the first SKU that does not exist."
func TestStore_Levels(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 1, "pen", "hat", "cup")
		for _, names := range [][]string{{"pen"}, {"pen", "hat"}, {"hat", "cup", "pen"}} {
			got, err := s.Levels(t.Context(), lines(names...)...)
			testserver.Must(t, err)
			for _, name := range names {
				if diff := cmp.Diff(s.sku(t, name), got.SKUs[name]); diff != "" {
					t.Errorf("%v (-want +got):\n%s", names, diff)
				}
			}
			if off := time.Since(got.At).Abs(); off > time.Minute || got.At.Location() != time.UTC {
				t.Errorf("read at %v, want now, in UTC", got.At)
			}
		}
		for _, names := range [][]string{{"mug"}, {"hat", "mug"}, {"mug", "hat", "nothing"}, {"PEN", "mug"}} {
			_, err := s.Levels(t.Context(), lines(names...)...)
			first := names[slices.IndexFunc(names, func(name string) bool { return name != "hat" })]
			if !errors.Is(err, order.ErrUnknownSKU) || !strings.Contains(err.Error(), `"`+first+`"`) {
				t.Errorf("%v: got %v, want an ErrUnknownSKU that names %s", names, err, first)
			}
		}
	})
}

func lines(names ...string) (lines []order.Line) {
	for _, name := range names {
		lines = append(lines, order.Line{SKU: name})
	}
	return lines
}

// "List returns at most limit SKUs whose names sort after the given one, in the order of their names."
func TestStore_List(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 1, "hat", "a.1", "mug", "a-1", "a_1")
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
			testserver.Must(t, err)
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

// "SetLimitPerBuyer sets the number of units of a SKU that a buyer may have, 0 for no limit, and returns the SKU after
// the change. Existing orders stay, and count. If the SKU had no limit, the units of each buyer are added up": also
// the units that an instance of an old version has sold without counting them.
func TestStore_SetLimitPerBuyer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10_000, "mug")
		var want stock.SKU
		for i, perBuyer := range []int64{2, 0, 3, stock.MaxUnits, 0, 0, 2} {
			if perBuyer < stock.MaxUnits {
				s.mustPlace(t, draft("ann", fmt.Sprint(i), "mug"), draft(fmt.Sprint("buyer-", i), "k", "mug")) // which counts nothing
			}
			want = s.sku(t, "mug")
			want.LimitPerBuyer = perBuyer
			after, err := s.SetLimitPerBuyer(t.Context(), "mug", perBuyer)
			if err != nil || after != want || s.sku(t, "mug") != want {
				t.Errorf("got %+v, %v, want %+v", after, err, want)
			}
			s.wantClean(t)
		}
		for _, c := range []struct {
			sku      string
			perBuyer int64
			want     error
		}{{"cup", 1, order.ErrUnknownSKU}, {"mug", -1, stock.ErrInvalid}, {"mug", stock.MaxUnits + 1, stock.ErrInvalid}} {
			if _, err := s.SetLimitPerBuyer(t.Context(), c.sku, c.perBuyer); !errors.Is(err, c.want) {
				t.Errorf("%s, %d: got %v, want %v", c.sku, c.perBuyer, err, c.want)
			}
		}
		if got := s.sku(t, "mug"); got != want {
			t.Errorf("after refusals: got %+v, want %+v", got, want)
		}
	})
}

func delivery(sku, key string, units int64) stock.Delivery {
	return stock.Delivery{SKU: sku, Key: key, Units: units, At: placedAt.Add(time.Hour)}
}

func (s shop) ledger(t *testing.T, sku string) []stock.Movement {
	t.Helper()
	movements, err := s.Movements(t.Context(), sku, "", 1_000)
	testserver.Must(t, err)
	return movements
}

// "A repeated delivery changes nothing and returns the first result, with replayed true; with another number of units,
// it is order.ErrKeyReused."
func TestStore_Supply(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug", "hat")
		testserver.Must(t, s.take(t, stock.Fenced, stock.Take{SKU: "mug", Units: 4, Fence: 7}))
		first, replayed, err := s.Supply(t.Context(), delivery("mug", "key-1", 5))
		if err != nil || replayed || first != s.sku(t, "mug") || first.Level != level(11, 4) || first.Fence != 7 {
			t.Fatalf("first: got %+v, replayed %v, %v", first, replayed, err)
		}
		if _, replayed, err := s.Supply(t.Context(), delivery("mug", "KEY-1", 1)); err != nil || replayed {
			t.Errorf("another key: got replayed %v, %v", replayed, err)
		}
		if again, replayed, err := s.Supply(t.Context(), delivery("mug", "key-1", 5)); again != first || !replayed || err != nil {
			t.Errorf("again: got %+v, replayed %v, %v, want %+v", again, replayed, err, first)
		}
		if _, _, err := s.Supply(t.Context(), delivery("mug", "key-1", 6)); !errors.Is(err, order.ErrKeyReused) {
			t.Errorf("other units: got %v, want ErrKeyReused", err)
		}
		if _, replayed, err := s.Supply(t.Context(), delivery("hat", "key-1", 6)); err != nil || replayed {
			t.Errorf("the key for another SKU: got replayed %v, %v", replayed, err)
		}
		s.wantLevel(t, "mug", level(12, 4))
		var supplied []int64
		for _, m := range s.ledger(t, "mug") {
			if m.Kind != stock.Supply || m.OrderID != "" || m.Level != level(m.Supplied, 0) {
				t.Errorf("got movement %+v, want a supply", m)
			}
			supplied = append(supplied, m.Supplied)
		}
		if diff := cmp.Diff([]int64{10, 5, 1}, supplied); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	})
}

// "A SKU that does not exist is order.ErrUnknownSKU. A SKU that would have more than stock.MaxUnits is
// stock.ErrInvalid." The key of a refused delivery is free.
func TestStore_Supply_refused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug")
		if _, _, err := s.Supply(t.Context(), delivery("hat", "key-1", 1)); !errors.Is(err, order.ErrUnknownSKU) {
			t.Errorf("unknown SKU: got %v, want ErrUnknownSKU", err)
		}
		_, _, err := s.Supply(t.Context(), delivery("mug", "key-1", stock.MaxUnits-9))
		if !errors.Is(err, stock.ErrInvalid) || !strings.Contains(err.Error(), "10 were already supplied") {
			t.Errorf("one unit too many: got %v, want an ErrInvalid with the units already supplied", err)
		}
		s.wantUntouched(t, 10)
		full, replayed, err := s.Supply(t.Context(), delivery("mug", "key-1", stock.MaxUnits-10))
		if err != nil || replayed || full.Level != level(stock.MaxUnits, 0) {
			t.Errorf("up to the limit: got %+v, replayed %v, %v", full.Level, replayed, err)
		}
	})
}

// A retry that overtakes its first attempt is one delivery; others at the same moment all count.
func TestStore_Supply_atOnce(t *testing.T) {
	t.Parallel()
	const twins, others = 12, 6
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug")
		var fresh atomic.Int64
		var all sync.WaitGroup
		for i := range twins + others {
			key := "twin"
			if i >= twins {
				key = fmt.Sprint("other-", i)
			}
			all.Go(func() {
				after, replayed, err := s.Supply(t.Context(), delivery("mug", key, 5))
				if err != nil || after.Supplied < 15 {
					t.Errorf("%s: got %+v, %v", key, after.Level, err)
				}
				if !replayed {
					fresh.Add(1)
				}
			})
		}
		all.Wait()
		if fresh.Load() != 1+others || len(s.ledger(t, "mug")) != 2+others {
			t.Errorf("got %d deliveries and %d movements, want %d and one more", fresh.Load(), len(s.ledger(t, "mug")), 1+others)
		}
		s.wantLevel(t, "mug", level(10+5*(1+others), 0))
		s.wantClean(t)
	})
}

// "Movements returns at most limit rows of a SKU's ledger whose ids sort after the given one."
func TestStore_Movements(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug", "hat")
		for i := range 4 {
			if _, _, err := s.Supply(t.Context(), delivery("mug", fmt.Sprint("key-", i), int64(i+1))); err != nil {
				t.Fatal(err)
			}
		}
		whole := s.ledger(t, "mug")
		if len(whole) != 5 || !whole[0].At.Equal(placedAt) || !whole[1].At.Equal(placedAt.Add(time.Hour)) || whole[0].SKU != "mug" {
			t.Fatalf("got %+v, want five of the mug", whole)
		}
		var pages []stock.Movement
		for after := ""; ; after = pages[len(pages)-1].ID {
			page, err := s.Movements(t.Context(), "mug", after, 2)
			testserver.Must(t, err)
			if pages = append(pages, page...); len(page) < 2 {
				break
			}
		}
		if diff := cmp.Diff(whole, pages); diff != "" {
			t.Errorf("in pages (-want +got):\n%s", diff)
		}
		if _, err := s.Movements(t.Context(), "cup", "", 2); !errors.Is(err, order.ErrUnknownSKU) {
			t.Errorf("unknown SKU: got %v, want ErrUnknownSKU", err)
		}
	})
}
