package orderstore_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "A deadlock runs fn again, a few times": two orders take the same SKUs in
// opposite order, and neither takes its second before both have their first.
func TestStore_InTx_retriesADeadlock(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "").Migrated(t), 10, "hat", "mug")
		var both sync.WaitGroup
		both.Add(2)
		var runs atomic.Int64
		var pair sync.WaitGroup
		for buyer, skus := range map[string][]string{"ann": {"hat", "mug"}, "bob": {"mug", "hat"}} {
			pair.Go(func() {
				o := draft(buyer, "k1", skus...)
				first := true
				err := s.orders.InTx(t.Context(), func(tx order.Tx) error {
					runs.Add(1)
					if first {
						first = false
						if err := tx.Take(stock.Conditional, stock.Take{SKU: skus[0], Units: 2}); err != nil {
							return err
						}
						both.Done()
						both.Wait()
						if err := tx.Take(stock.Conditional, stock.Take{SKU: skus[1], Units: 2}); err != nil {
							return err
						}
						return placeRest(tx, o)
					}
					return write(tx, o)
				})
				if err != nil {
					t.Errorf("%s: %v", buyer, err)
				}
			})
		}
		pair.Wait()
		if runs.Load() < 3 {
			t.Errorf("got %d runs, want a third after the deadlock", runs.Load())
		}
		accounts, found := s.audit(t, "")
		for _, a := range accounts {
			if want := (stock.Level{Supplied: 10, Available: 6, Reserved: 4}); a.Level != want {
				t.Errorf("%s: got %+v, want %+v", a.SKU, a.Level, want)
			}
		}
		if len(found) > 0 {
			t.Errorf("audit: got %v, want no difference", found)
		}
	})
}

// placeRest is write for an order whose units are taken already.
func placeRest(tx order.Tx, o order.Order) error {
	if err := tx.ClaimKeys(order.Claim{Order: o, Fingerprint: "f"}); err != nil {
		return err
	}
	if err := tx.Add(o); err != nil {
		return err
	}
	for _, line := range o.Lines {
		if err := tx.Record(reservation(o, line)); err != nil {
			return err
		}
	}
	return nil
}

// "ErrInProgress: somebody holds it, uncommitted, for longer than the database
// waits." and "ErrBusy means that the database gave up waiting; nothing was
// changed": another transaction holds what the order needs, and does not end.
func TestStore_InTx_lockWait(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "innodb_lock_wait_timeout=1")
		s := newShop(t, database.Migrated(t), 10, "mug")
		for _, c := range []struct {
			name string
			hold func(tx order.Tx) error
			want error
		}{
			{"the same key", func(tx order.Tx) error {
				return tx.ClaimKeys(order.Claim{Order: draft("ann", "k1", "mug"), Fingerprint: "f"})
			}, order.ErrInProgress},
			{"the same SKU", func(tx order.Tx) error {
				return tx.Take(stock.Conditional, stock.Take{SKU: "mug", Units: 1})
			}, order.ErrBusy},
		} {
			enough := errors.New("enough")
			err := s.orders.InTx(t.Context(), func(tx order.Tx) error {
				if err := c.hold(tx); err != nil {
					return err
				}
				if err := s.place(t.Context(), draft("ann", "k1", "mug")); !errors.Is(err, c.want) {
					t.Errorf("%s is held: got %v, want %v", c.name, err, c.want)
				}
				return enough
			})
			if !errors.Is(err, enough) {
				t.Errorf("holder of %s: %v", c.name, err)
			}
			s.wantUntouched(t, 10)
		}
		s.mustPlace(t, draft("ann", "k1", "mug"))
	})
}

// "A transaction in which a statement failed is never committed, even if the
// function that ran it returns nil": after a lock wait timeout it is still open,
// and a COMMIT would save an order that is paid, and its units reserved.
func TestStore_InTx_lockWaitHalfWay(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t), 10, "mug")
		o := draft("ann", "k1", "mug")
		s.mustPlace(t, o)
		enough := errors.New("enough")
		err := s.orders.InTx(t.Context(), func(holder order.Tx) error {
			if err := holder.Take(stock.Conditional, stock.Take{SKU: "mug", Units: 1}); err != nil {
				return err
			}
			err := s.orders.InTx(t.Context(), func(tx order.Tx) error {
				if now, moved, err := tx.Move(o.ID, order.Paid); now != order.Paid || !moved || err != nil {
					t.Errorf("move: got %s, %v, %v, want it paid", now, moved, err)
				}
				if err := tx.Settle(stock.Sell, "mug", 2); err == nil {
					t.Error("settled units of a SKU whose row somebody else holds")
				}
				return nil
			})
			if !errors.Is(err, order.ErrBusy) {
				t.Errorf("got %v, want ErrBusy", err)
			}
			return enough
		})
		if !errors.Is(err, enough) {
			t.Errorf("holder: %v", err)
		}
		if now, err := s.orders.Order(t.Context(), o.ID); err != nil || now.Status != order.Pending {
			t.Errorf("order is %q, %v, want pending", now.Status, err)
		}
		if _, found := s.audit(t, ""); len(found) > 0 {
			t.Errorf("audit: got %v, want no difference", found)
		}
	})
}

// "A Conflict runs the whole fn again, a few times, with jitter; then it is
// ErrBusy." In SQLite that is a file which somebody else is writing to.
func TestStore_InTx_fileIsBusy(t *testing.T) {
	t.Parallel()
	database := storetest.Kinds()[0].New(t, "")
	s := newShop(t, database.Migrated(t), 10, "mug")
	other := newShop(t, database.Open(t), 0)
	conns, err := other.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	conns.SetMaxOpenConns(1)
	if err := other.db.Exec("PRAGMA busy_timeout = 1").Error; err != nil { // milliseconds
		t.Fatal(err)
	}
	s.mustPlace(t, draft("ann", "k1", "mug"))
	err = s.orders.InTx(t.Context(), func(order.Tx) error {
		busy := other.place(t.Context(), draft("bob", "k1", "mug"))
		if !errors.Is(busy, order.ErrBusy) || !strings.Contains(busy.Error(), "attempts") {
			t.Errorf("got %v, want ErrBusy after some attempts", busy)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.wantRows(t, rows{Orders: 1, Lines: 1, Movements: 2, Keys: 1})
}
