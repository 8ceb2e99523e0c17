package order_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// What the batch has read may be old when it writes: somebody without a lease took
// units, or used a key. It looks again, and goes on.
func TestLanes_looksAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for name, c := range map[string]struct {
			faster order.Request
			want   []error // of three who want two units each
		}{
			"units": {buyAs("zoe", "other", 3), []error{nil, nil, stock.ErrSoldOut}},
			"key":   {buyAs("buyer-1", "key", 2), []error{nil, nil, nil}},
			"last":  {buyAs("buyer-1", "key", 2), []error{nil, nil, stock.ErrSoldOut}},
		} {
			t.Run(name, func(t *testing.T) {
				b := setup(t, db, lock.NewMemory(), 10*time.Second)
				reset(t, db)
				units := int64(7)
				if name == "last" {
					units = 4
				}
				b.supply(t, "mug", units)
				l := stand(t, b)
				for i := range c.want {
					l.join(t.Context(), t, buyAs(fmt.Sprint("buyer-", i), "key", 2))
				}
				var faster order.Order
				l.gate.before = func() {
					if l.begun.Add(1) != 1 {
						return
					}
					r := c.faster
					r.Strategy = "conditional"
					var err error
					if faster, _, err = b.Place(t.Context(), r); err != nil {
						t.Errorf("faster: %v", err)
					}
				}
				l.serve(t)
				for i, want := range c.want {
					l.want(t, i, fmt.Sprint("buyer-", i), want)
				}
				if twin := l.told[1]; c.faster.Buyer == "buyer-1" && (!twin.replayed || twin.order.ID != faster.ID) {
					t.Errorf("twin: got %+v, want a replay of %s", twin, faster.ID)
				}
				l.wantBegun(t, 2)
				b.audit(t, "mug")
			})
		}
	})
}

// reset empties a shop.
func reset(t *testing.T, db *gorm.DB) {
	t.Helper()
	for _, table := range []string{"skus", "orders", "order_lines", "movements", "idempotency_keys"} {
		if err := db.Exec("DELETE FROM " + table).Error; err != nil {
			t.Fatal(err)
		}
	}
}

// A key that somebody else holds, uncommitted, is the bad luck of its buyer alone:
// "the batch falls back to what is needed and no further".
func TestLanes_keyInProgress(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		if !kind.Server {
			t.Skip("SQLite: one transaction at a time holds all keys")
		}
		b := setup(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t), lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 20)
		l := stand(t, b)
		for i := range 5 {
			l.join(t.Context(), t, buyAs(fmt.Sprint("buyer-", i), "key", 1))
		}
		twin := order.Order{ID: "twin", Buyer: "buyer-2", Key: "key", CreatedAt: time.Now().UTC()}
		enough := errors.New("enough")
		err := b.orders.InTx(t.Context(), func(tx order.Tx) error {
			if err := tx.ClaimKeys(order.Claim{Order: twin, Fingerprint: "print"}); err != nil {
				return err
			}
			l.serve(t)
			return enough
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		for i := range 5 {
			var want error
			if i == 2 {
				want = order.ErrInProgress
			}
			l.want(t, i, fmt.Sprint("buyer-", i), want)
		}
		b.wantLevel(t, "mug", 16, 4)
		b.audit(t, "mug")
	})
}

// "Each counts for those behind it", and what one may not have is for those behind
// it: nobody is told that the units are gone because of an order that was refused.
func TestLanes_limits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for name, c := range map[string]struct {
			maxOpen  int
			perBuyer int64
			want     error
		}{
			"open orders":   {maxOpen: 1, want: order.ErrTooManyOpen},
			"units of them": {perBuyer: 1, want: order.ErrPurchaseLimit},
		} {
			t.Run(name, func(t *testing.T) {
				b := setup(t, db, lock.NewMemory(), 10*time.Second)
				reset(t, db)
				b.supply(t, "mug", 4)
				b.limitPerBuyer(t, "mug", c.perBuyer)
				b.place(t, "first", "mug", 1) // by ann
				l := stand(t, b, func(o *order.Config) { o.MaxOpen = c.maxOpen })
				l.join(t.Context(), t, buyAs("ann", "second", 1))
				l.join(t.Context(), t, buyAs("bob", "first", 1))
				l.join(t.Context(), t, buyAs("bob", "second", 1))
				l.join(t.Context(), t, buyAs("eve", "first", 1))
				l.join(t.Context(), t, buyAs("zoe", "first", 1))
				l.join(t.Context(), t, buyAs("max", "first", 1))
				l.join(t.Context(), t, buyAs("ann", "first", 1)) // a replay is no new order
				l.serve(t)
				for i, want := range []error{c.want, nil, c.want, nil, nil, stock.ErrSoldOut, nil} {
					l.want(t, i, []string{"ann", "bob", "bob", "eve", "zoe", "max", "ann"}[i], want)
				}
				l.wantBegun(t, 2)
				b.wantLevel(t, "mug", 0, 4)
			})
		}
	})
}

// An order that a buyer places elsewhere keeps that buyer waiting, and no other.
func TestLanes_buyerInTheWay(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		if !kind.Server {
			t.Skip("SQLite: one transaction at a time")
		}
		b := setup(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t), lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 20)
		l := stand(t, b, func(o *order.Config) { o.MaxOpen = 10 })
		for i := range 5 {
			l.join(t.Context(), t, buyAs(fmt.Sprint("buyer-", i), "key", 1))
		}
		err := b.orders.InTx(t.Context(), func(tx order.Tx) error {
			if err := tx.LockBuyers("buyer-2"); err != nil {
				return err
			}
			l.serve(t)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			var want error
			if i == 2 {
				want = order.ErrBusy
			}
			l.want(t, i, fmt.Sprint("buyer-", i), want)
		}
		b.wantLevel(t, "mug", 16, 4)
	})
}
