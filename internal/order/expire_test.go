package order_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "ExpireDue expires at most limit orders that are due, the longest due first",
// and leaves the others.
func TestService_ExpireDue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		var orders []order.Order
		for i := range 4 {
			orders = append(orders, b.place(t, fmt.Sprint(i), "mug", 1))
		}
		b.makeDue(t, orders[2], orders[0], orders[1])
		for _, want := range []int{2, 1, 0} {
			if n, err := b.ExpireDue(t.Context(), 2); n != want || err != nil {
				t.Errorf("expired %d, %v, want %d", n, err, want)
			}
			if want == 2 {
				b.wantEnd(t, orders[1], order.Pending, "mug", stock.Level{Supplied: 10, Available: 8, Reserved: 2})
				b.wantEnd(t, orders[2], order.Expired, "mug", stock.Level{Supplied: 10, Available: 8, Reserved: 2})
			}
		}
		b.wantEnd(t, orders[3], order.Pending, "mug", stock.Level{Supplied: 10, Available: 9, Reserved: 1})
	})
}

// "An order that cannot be expired does not keep others from it."
func TestService_ExpireDue_passesOver(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "bad", 10)
		b.supply(t, "mug", 10)
		stuck, fine := b.place(t, "k1", "bad", 2), b.place(t, "k2", "mug", 2)
		b.makeDue(t, stuck, fine)
		level := func(available, reserved int) {
			err := b.db.Exec("UPDATE skus SET available = ?, reserved = ? WHERE name = 'bad'", available, reserved).Error
			if err != nil {
				t.Fatal(err)
			}
		}
		level(10, 0) // as a lost update leaves it
		n, err := b.ExpireDue(t.Context(), 1)
		if n != 1 || !errors.Is(err, stock.ErrNotReserved) {
			t.Errorf("expired %d, %v, want 1 and an ErrNotReserved for the other", n, err)
		}
		b.wantEnd(t, fine, order.Expired, "mug", stock.Level{Supplied: 10, Available: 10})
		level(8, 2)
		b.wantEnd(t, stuck, order.Pending, "bad", stock.Level{Supplied: 10, Available: 8, Reserved: 2})
	})
}

// "A sweep that fails to expire too many gives up, and the next one begins behind
// them", the one after the last of them at the front again.
func TestService_ExpireDue_manyStuck(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "bad", 10)
		b.supply(t, "mug", 10)
		fine := b.place(t, "k1", "mug", 2)
		b.makeDue(t, fine)
		stuck := make([]order.Order, 250) // two sweeps and a half
		for i := range stuck {
			stuck[i] = fine
			stuck[i].ID, stuck[i].Key = uuid.NewString(), fmt.Sprint("bad-", i)
			stuck[i].Lines = []order.Line{{SKU: "bad", Units: 1, Price: fine.Lines[0].Price}}
			stuck[i].ExpiresAt = time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		// Nothing is reserved for them, as after lost updates.
		if err := b.orders.InTx(t.Context(), func(tx order.Tx) error { return tx.Add(stuck...) }); err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct{ expired, failed int }{{0, 100}, {0, 100}, {1, 50}, {0, 100}, {0, 100}, {0, 50}, {0, 100}} {
			n, err := b.ExpireDue(t.Context(), 500)
			if failed := strings.Count(fmt.Sprint(err), "expire order"); n != want.expired || failed != want.failed || !errors.Is(err, stock.ErrNotReserved) {
				t.Errorf("sweep %d: expired %d, failed to expire %d (%.200v), want %+v", i, n, failed, err, want)
			}
		}
		b.wantEnd(t, fine, order.Expired, "mug", stock.Level{Supplied: 10, Available: 10})
	})
}

// "It is passed over": also an order whose row, or whose SKU's row, somebody holds
// for longer than the database waits. "So are orders of the same SKUs", which would
// wait as long.
func TestService_ExpireDue_locked(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		for name, c := range map[string]struct {
			hold    func(tx order.Tx, o order.Order) error
			expired int
		}{
			"order": {func(tx order.Tx, o order.Order) error {
				_, _, err := tx.Move(o.ID, order.Expired)
				return err
			}, 4},
			"SKU": {func(tx order.Tx, o order.Order) error {
				return tx.Settle(stock.Release, o.Lines[0].SKU, 1)
			}, 2},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t), lock.NewMemory(), 10*time.Second)
				b.supply(t, "bad", 10)
				b.supply(t, "mug", 10)
				var orders []order.Order
				for i, sku := range []string{"bad", "bad", "mug", "bad", "mug"} {
					orders = append(orders, b.place(t, fmt.Sprint(i), sku, 1))
				}
				b.makeDue(t, orders...)
				enough := errors.New("enough")
				err := b.orders.InTx(t.Context(), func(tx order.Tx) error {
					if err := c.hold(tx, orders[0]); err != nil {
						return err
					}
					n, err := b.ExpireDue(t.Context(), 10)
					if n != c.expired || !errors.Is(err, order.ErrBusy) || strings.Count(err.Error(), "expire order") != 1 {
						t.Errorf("expired %d, %v, want %d, and one ErrBusy", n, err, c.expired)
					}
					return enough
				})
				if !errors.Is(err, enough) {
					t.Fatal(err)
				}
				if n, err := b.ExpireDue(t.Context(), 10); n != len(orders)-c.expired || err != nil {
					t.Errorf("let go: expired %d, %v, want %d", n, err, len(orders)-c.expired)
				}
				b.wantEnd(t, orders[3], order.Expired, "bad", stock.Level{Supplied: 10, Available: 10})
				b.wantEnd(t, orders[4], order.Expired, "mug", stock.Level{Supplied: 10, Available: 10})
			})
		}
	})
}

// "A database that does not answer ends the sweep": not each order has to find out.
func TestService_ExpireDue_lost(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		b := setup(t, database.Migrated(t), lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		var orders []order.Order
		for i := range 5 {
			orders = append(orders, b.place(t, fmt.Sprint(i), "mug", 1))
		}
		b.makeDue(t, orders...)
		var lost atomic.Bool
		proxy := &storetest.Proxy{Judge: func(statement string) storetest.Fate {
			if lost.Load() || statement == "START TRANSACTION" {
				lost.Store(true)
				return storetest.Drop
			}
			return storetest.Pass
		}}
		cut := setup(t, database.Through(t, proxy).Open(t), lock.NewMemory(), 10*time.Second)
		n, err := cut.ExpireDue(t.Context(), 10)
		if n != 0 || !errors.Is(err, order.ErrBusy) || strings.Count(err.Error(), "expire order") != 1 {
			t.Errorf("expired %d, %v, want one try and an ErrBusy", n, err)
		}
		if n, err := b.ExpireDue(t.Context(), 10); n != len(orders) || err != nil {
			t.Errorf("expired %d, %v, want %d", n, err, len(orders))
		}
	})
}
