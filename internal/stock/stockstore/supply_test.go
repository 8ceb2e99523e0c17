package stockstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
	"example.com/shop/internal/store/storetest"
)

func delivery(sku, key string, units int64) stock.Delivery {
	return stock.Delivery{SKU: sku, Key: key, Units: units, At: created.Add(time.Hour)}
}

// ledger reads all movements of a SKU.
func ledger(t *testing.T, s *stockstore.Store, sku string) []stock.Movement {
	t.Helper()
	movements, err := s.Movements(t.Context(), sku, "", 1_000)
	if err != nil {
		t.Fatal(err)
	}
	return movements
}

// "The same delivery again changes nothing and returns what the first returned,
// with replayed true; with another number of units it is stock.ErrKeyReused."
func TestStore_Supply(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		create(t, s, "hat", 1)
		if err := take(t, db, stock.Fenced, stock.Take{SKU: mug, Units: 4, Fence: 7}); err != nil {
			t.Fatal(err)
		}
		first, replayed, err := s.Supply(t.Context(), delivery(mug, "key-1", 5))
		if err != nil || replayed {
			t.Fatalf("first: got replayed %v, %v", replayed, err)
		}
		if diff := cmp.Diff(read(t, s, mug), first); diff != "" {
			t.Errorf("answer, against what is there (-want +got):\n%s", diff)
		}
		if want := level(15, 11, 4); first.Level != want || first.Fence != 7 {
			t.Errorf("got %+v, want %+v and the fence as it was", first, want)
		}
		if _, replayed, err := s.Supply(t.Context(), delivery(mug, "KEY-1", 1)); err != nil || replayed {
			t.Errorf("another key: got replayed %v, %v", replayed, err)
		}
		again, replayed, err := s.Supply(t.Context(), delivery(mug, "key-1", 5))
		if diff := cmp.Diff(first, again); diff != "" || !replayed || err != nil {
			t.Errorf("again: replayed %v, %v (-want +got):\n%s", replayed, err, diff)
		}
		if _, _, err := s.Supply(t.Context(), delivery(mug, "key-1", 6)); !errors.Is(err, stock.ErrKeyReused) {
			t.Errorf("other units: got %v, want ErrKeyReused", err)
		}
		if _, replayed, err := s.Supply(t.Context(), delivery("hat", "key-1", 6)); err != nil || replayed {
			t.Errorf("the key for another SKU: got replayed %v, %v", replayed, err)
		}
		if got, want := read(t, s, mug).Level, level(16, 12, 4); got != want {
			t.Errorf("level: got %+v, want %+v", got, want)
		}
		var supplied []int64
		for _, m := range ledger(t, s, mug) {
			if m.Kind != stock.Supply || m.OrderID != "" || m.Change != level(m.Change.Supplied, m.Change.Supplied, 0) {
				t.Errorf("got movement %+v, want a supply", m)
			}
			supplied = append(supplied, m.Change.Supplied)
		}
		if diff := cmp.Diff([]int64{10, 5, 1}, supplied); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	})
}

// "A SKU that nobody created is stock.ErrUnknownSKU, one that would have more
// than stock.MaxUnits is stock.ErrInvalid." A key of a refused delivery is free.
func TestStore_Supply_refused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		if _, _, err := s.Supply(t.Context(), delivery("hat", "key-1", 1)); !errors.Is(err, stock.ErrUnknownSKU) {
			t.Errorf("unknown SKU: got %v, want ErrUnknownSKU", err)
		}
		_, _, err := s.Supply(t.Context(), delivery(mug, "key-1", stock.MaxUnits-9))
		if !errors.Is(err, stock.ErrInvalid) || !strings.Contains(err.Error(), "10 were supplied") {
			t.Errorf("one too many: got %v, want ErrInvalid that says how many there are", err)
		}
		if got, want := read(t, s, mug).Level, level(10, 10, 0); got != want || len(ledger(t, s, mug)) != 1 {
			t.Errorf("level: got %+v, want %+v", got, want)
		}
		full, replayed, err := s.Supply(t.Context(), delivery(mug, "key-1", stock.MaxUnits-10))
		if want := level(stock.MaxUnits, stock.MaxUnits, 0); err != nil || replayed || full.Level != want {
			t.Errorf("up to the limit: got %+v, replayed %v, %v; want %+v", full.Level, replayed, err, want)
		}
	})
}

// A retry that overtakes its first attempt is one delivery; others at the same
// moment all count.
func TestStore_Supply_atOnce(t *testing.T) {
	t.Parallel()
	const twins, others = 12, 6
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		var fresh atomic.Int64
		var all sync.WaitGroup
		supply := func(key string) {
			after, replayed, err := s.Supply(t.Context(), delivery(mug, key, 5))
			if err != nil || after.Level.Supplied < 15 {
				t.Errorf("%s: got %+v, %v", key, after.Level, err)
			}
			if !replayed {
				fresh.Add(1)
			}
		}
		for range twins {
			all.Go(func() { supply("twin") })
		}
		for i := range others {
			all.Go(func() { supply(fmt.Sprint("other-", i)) })
		}
		all.Wait()
		const units = 10 + 5*(1+others)
		if got := read(t, s, mug).Level; fresh.Load() != 1+others || got != level(units, units, 0) {
			t.Errorf("got %d deliveries and %+v, want %d and %d units", fresh.Load(), got, 1+others, units)
		}
		if got := len(ledger(t, s, mug)); got != 2+others {
			t.Errorf("got %d movements, want %d", got, 2+others)
		}
	})
}

// "Movements returns at most limit rows of a SKU's ledger whose ids sort after
// the given one."
func TestStore_Movements(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := withMugs(t, db, 10)
		create(t, s, "hat", 1)
		for i := range 4 {
			if _, _, err := s.Supply(t.Context(), delivery(mug, fmt.Sprint("key-", i), int64(i+1))); err != nil {
				t.Fatal(err)
			}
		}
		whole := ledger(t, s, mug)
		if len(whole) != 5 || !whole[0].At.Equal(created) || !whole[1].At.Equal(created.Add(time.Hour)) || whole[0].SKU != mug {
			t.Fatalf("got %+v, want five of the mug", whole)
		}
		var pages []stock.Movement
		for after := ""; ; after = pages[len(pages)-1].ID {
			page, err := s.Movements(t.Context(), mug, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if pages = append(pages, page...); len(page) < 2 {
				break
			}
		}
		if diff := cmp.Diff(whole, pages); diff != "" {
			t.Errorf("in pages (-want +got):\n%s", diff)
		}
		if _, err := s.Movements(t.Context(), "cup", "", 2); !errors.Is(err, stock.ErrUnknownSKU) {
			t.Errorf("unknown SKU: got %v, want ErrUnknownSKU", err)
		}
	})
}
