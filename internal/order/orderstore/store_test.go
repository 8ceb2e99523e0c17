package orderstore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// "The transaction of an order holds its idempotency key, its units, the order
// with its lines, and its movements."
func TestStore_placeAndReadBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug", "hat")
		want := draft("ann", "k1", "mug", "hat") // not in the order of names
		s.mustPlace(t, want, draft("bob", "k1", "hat"))

		got, err := s.orders.Order(t.Context(), want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by id (-want +got):\n%s", diff)
		}
		got, fingerprint, err := s.orders.Placed(t.Context(), "ann", "k1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by key (-want +got):\n%s", diff)
		}
		if fingerprint != "fingerprint of k1" {
			t.Errorf("fingerprint: got %q", fingerprint)
		}
		s.wantRows(t, rows{Orders: 2, Lines: 3, Movements: 5, Keys: 2})
		if _, found := s.audit(t, ""); len(found) > 0 {
			t.Errorf("audit: got %v, want no difference", found)
		}
	})
}

func TestStore_notFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		s.mustPlace(t, draft("ann", "k1", "mug"))
		for _, c := range []struct{ buyer, key string }{{"ann", "k2"}, {"bob", "k1"}, {"", ""}} {
			if _, _, err := s.orders.Placed(t.Context(), c.buyer, c.key); !errors.Is(err, order.ErrNotFound) {
				t.Errorf("key %q of %q: got %v, want ErrNotFound", c.key, c.buyer, err)
			}
		}
		if _, err := s.orders.Order(t.Context(), newID()); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("order: got %v, want ErrNotFound", err)
		}
	})
}

// "Text compares byte by byte everywhere, trailing spaces included."
func TestStore_keysDifferInAnyByte(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		keys := []string{"abc", "ABC", "Abc", "abc ", " abc", "abc  ", "ab", `a'b"c\`, "%", "_", "abd", "a%00c"}
		s := newShop(t, db, 100, "mug")
		placed := map[string]order.Order{}
		for _, key := range keys {
			placed[key] = draft("ann", key, "mug")
			if err := s.place(t.Context(), placed[key]); err != nil {
				t.Errorf("key %q: %v", key, err)
			}
		}
		for _, buyer := range []string{"Ann", "ANN", "ann."} {
			if err := s.place(t.Context(), draft(buyer, "abc", "mug")); err != nil {
				t.Errorf("buyer %q: %v", buyer, err)
			}
		}
		for _, key := range keys {
			got, _, err := s.orders.Placed(t.Context(), "ann", key)
			if err != nil || got.ID != placed[key].ID {
				t.Errorf("key %q: got order %s, %v, want %s", key, got.ID, err, placed[key].ID)
			}
		}
	})
}

// "A database that is not there is order.ErrBusy", also for those who only read.
func TestStore_readFromLostDatabase(t *testing.T) {
	t.Parallel()
	db := storetest.Kinds()[0].New(t, "").Migrated(t)
	s := newShop(t, db, 10, "mug")
	storetest.Lose(t, db)
	for name, read := range map[string]func() error{
		"placed":   func() error { _, _, err := s.orders.Placed(t.Context(), "ann", "k1"); return err },
		"order":    func() error { _, err := s.orders.Order(t.Context(), newID()); return err },
		"of buyer": func() error { _, err := s.orders.OfBuyer(t.Context(), "ann", "", 1); return err },
		"due":      func() error { _, err := s.orders.Due(t.Context(), order.Order{}, 1); return err },
		"audit":    func() error { return s.orders.Audit(t.Context(), "", ignoreAccount, ignoreDifference) },
	} {
		if err := read(); !errors.Is(err, order.ErrBusy) {
			t.Errorf("%s: got %v, want ErrBusy", name, err)
		}
	}
}
