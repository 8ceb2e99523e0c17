package orderstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// placedAgo places orders whose age is given, by the database's clock.
func (s shop) placedAgo(t testing.TB, age time.Duration, orders ...order.Order) {
	t.Helper()
	now, err := store.Now(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range orders {
		o.CreatedAt = now.Add(-age)
		s.mustPlace(t, o)
	}
}

func (s shop) purge(t testing.TB, keep time.Duration, want int) {
	t.Helper()
	if n, err := s.orders.PurgeKeys(t.Context(), keep); n != want || err != nil {
		t.Errorf("purged %d, %v, want %d", n, err, want)
	}
}

func (s shop) wantClean(t testing.TB) {
	t.Helper()
	if _, found := s.audit(t, ""); len(found) > 0 {
		t.Errorf("audit: got %v, want no difference", found)
	}
}

// "PurgeKeys deletes the idempotency keys that were written longer than keep ago",
// in more than one batch, and then they may be used again.
func TestStore_PurgeKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 1000, "mug")
		for i := range 2*100 + 3 {
			tamper(t, s, fmt.Sprintf("INSERT INTO idempotency_keys VALUES ('ann', 'old-%d', 'f', 'o', '2026-01-01 00:00:00.000000')", i))
		}
		s.placedAgo(t, 25*time.Hour, draft("ann", "k1", "mug"))
		s.placedAgo(t, 23*time.Hour, draft("ann", "k2", "mug"))
		s.purge(t, 24*time.Hour, 204)
		s.purge(t, 24*time.Hour, 0)
		s.wantClean(t)
		s.placedAgo(t, 0, draft("ann", "k1", "mug"))
		if err := s.place(t.Context(), draft("ann", "k2", "mug")); err == nil {
			t.Error("a key that is not purged was used twice")
		}
		s.wantRows(t, rows{Orders: 3, Lines: 3, Movements: 4, Keys: 2})
		s.wantClean(t)
	})
}

// "An order that is younger than the mark and lacks its key is a difference to
// the audit, an older one is not."
func TestStore_PurgeKeys_mark(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		old, young := draft("ann", "old", "mug"), draft("ann", "young", "mug")
		s.placedAgo(t, 2*time.Hour, old)
		s.placedAgo(t, time.Minute, young)
		tamper(t, s, "DELETE FROM idempotency_keys")
		for _, c := range []struct {
			keep time.Duration
			want []string
		}{
			{24 * time.Hour, []string{old.ID, young.ID}},
			{time.Hour, []string{young.ID}},
			{24 * time.Hour, []string{young.ID}}, // the mark never goes back
			{0, nil},
		} {
			s.purge(t, c.keep, 0)
			_, found := s.audit(t, "")
			for _, d := range found {
				if d.Invariant != "I2" || (d.OrderID != old.ID && d.OrderID != young.ID) {
					t.Errorf("keep %v: got %+v, want it about a key", c.keep, d)
				}
			}
			if len(found) != len(c.want) {
				t.Errorf("keep %v: got %v, want differences of %v", c.keep, found, c.want)
			}
		}
	})
}

// An audit that runs while keys are purged sees all of them or knows of the mark.
func TestStore_PurgeKeys_whileAudited(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "hat", "mug")
		s.placedAgo(t, 2*time.Hour, draft("ann", "k1", "mug"))
		meanwhile := func(a stock.Account) error {
			if a.SKU == "hat" { // the first
				s.purge(t, time.Hour, 1)
			}
			return nil
		}
		err := s.orders.Audit(t.Context(), "", meanwhile, func(d stock.Difference) error {
			t.Errorf("got %+v, want no difference", d)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.wantClean(t)
	})
}

// The purge locks no gap "where buyers write": before it commits, they place
// orders with keys beside those that it has deleted.
func TestStore_PurgeKeys_inNobodysWay(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "innodb_lock_wait_timeout=2")
		s := newShop(t, database.Migrated(t), 10, "mug")
		s.placedAgo(t, 25*time.Hour, draft("ann", "k1", "mug"), draft("ann", "k3", "mug"))
		purger := newShop(t, database.Open(t), 0)
		var deleted atomic.Int64
		between := func(*gorm.DB) {
			if deleted.Add(1) != 2 {
				return
			}
			s.placedAgo(t, 0, draft("ann", "k0", "mug"), draft("ann", "k2", "mug"), draft("ann", "k4", "mug"))
		}
		if err := purger.db.Callback().Delete().After("gorm:delete").Register("buyers", between); err != nil {
			t.Fatal(err)
		}
		purger.purge(t, 24*time.Hour, 2)
		s.wantRows(t, rows{Orders: 5, Lines: 5, Movements: 6, Keys: 3})
		s.wantClean(t)
	})
}

// A key that was found old and is in use again when it is deleted stays.
func TestStore_PurgeKeys_usedAgain(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		s := newShop(t, database.Migrated(t), 10, "mug")
		s.placedAgo(t, 25*time.Hour, draft("ann", "k1", "mug"))
		purger := newShop(t, database.Open(t), 0)
		again := func(*gorm.DB) {
			s.purge(t, 24*time.Hour, 1)
			s.placedAgo(t, 0, draft("ann", "k1", "mug"))
		}
		if err := purger.db.Callback().Delete().Before("gorm:delete").Register("another purge", again); err != nil {
			t.Fatal(err)
		}
		purger.purge(t, 24*time.Hour, 0)
		s.wantRows(t, rows{Orders: 2, Lines: 2, Movements: 3, Keys: 1})
		s.wantClean(t)
	})
}
