package order_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// "A refusal leaves its key free." An order that has ended so already is no refusal.
func TestService_end_keyOfARefusal(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "mug", 10)
		paid, due, open := b.place(t, "k1", "mug", 1), b.place(t, "k2", "mug", 1), b.place(t, "k3", "mug", 1)
		b.makeDue(t, due)
		for _, first := range []bool{true, false} {
			if now, err := b.Pay(t.Context(), withKey(paid, "")); err != nil || now.First != first || now.Replayed {
				t.Fatalf("without a key: %+v, %v, want first %v", now, err, first)
			}
		}
		b.wantKeys(t, 3)
		for _, replay := range []bool{false, true} {
			if now, err := b.Pay(t.Context(), withKey(paid, "paid before")); err != nil || now.First || now.Replayed != replay {
				t.Errorf("paid without a key before: %+v, %v, want it not first, replayed %v", now, err, replay)
			}
		}
		b.wantKeys(t, 4)

		_, err := b.Cancel(t.Context(), withKey(paid, "key"))
		wantErr(t, "paid", err, order.ErrState)
		_, err = b.Pay(t.Context(), withKey(due, "key"))
		wantErr(t, "due", err, order.ErrExpired)
		_, err = b.Pay(t.Context(), order.EndRequest{Buyer: "bob", OrderID: open.ID, Key: "key"})
		wantErr(t, "another buyer", err, order.ErrNotFound)
		for key, want := range map[string]error{
			strings.Repeat("k", order.MaxKey+1): order.ErrKeyInvalid, "a\nb": order.ErrKeyInvalid, "schlüssel": order.ErrKeyInvalid,
		} {
			if _, err := b.Pay(t.Context(), withKey(open, key)); !errors.Is(err, want) {
				t.Errorf("key %.20q: %v, want %v", key, err, want)
			}
		}
		if _, _, err := b.Place(t.Context(), buy("key", "mug", 100)); !errors.Is(err, order.ErrSoldOut) {
			t.Errorf("too many: %v, want ErrSoldOut", err)
		}
		b.wantKeys(t, 4)
		if now, err := b.Cancel(t.Context(), withKey(open, "key")); err != nil || !now.First || now.Replayed {
			t.Errorf("the key is free: %+v, %v, want the first answer", now, err)
		}
		b.wantEnd(t, open, order.Cancelled, "mug", stock.Level{Supplied: 10, Available: 9, Sold: 1})
	})
}

// Between a request's look for its key and its transaction, a twin or another request may come with the same key.
func TestService_end_keyTakenMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "mug", 10)
		o, other := b.place(t, "k1", "mug", 1), b.place(t, "k2", "mug", 1)
		s := b.another(t)
		g := s.spy
		for _, c := range []struct {
			first    order.Order
			replayed bool
			err      error
		}{{other, false, order.ErrKeyReused}, {o, true, nil}} {
			key := "of " + c.first.ID
			g.beforeTx = func() error {
				g.beforeTx = nil
				if now, err := b.Pay(t.Context(), withKey(c.first, key)); err != nil || !now.First || now.Replayed {
					t.Errorf("first: %+v, %v, want the first answer", now, err)
				}
				return nil
			}
			paid, err := s.Pay(t.Context(), withKey(o, key))
			if paid.First || paid.Replayed != c.replayed || !errors.Is(err, c.err) || err == nil && paid.Status != order.Paid {
				t.Errorf("got %+v, %v, want it not first, replayed %v, %v", paid, err, c.replayed, c.err)
			}
		}
		b.wantEnd(t, o, order.Paid, "mug", stock.Level{Supplied: 10, Available: 8, Sold: 2})
	})
}

// "This holds for as long as the key is kept": a purged key makes a new order; until then the key counts, however old
// it is.
func TestService_Place_purgedKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "mug", 10)
		first := b.place(t, "key", "mug", 1)
		for _, table := range []string{"orders", "idempotency_keys"} {
			b.exec(t, "UPDATE "+table+" SET created_at = '2020-01-01 00:00:00.000000'")
		}
		if again, replayed, err := b.Place(t.Context(), buy("key", "mug", 1)); err != nil || !replayed || again.ID != first.ID {
			t.Errorf("old, not purged: %s, replayed %v, %v, want %s", again.ID, replayed, err, first.ID)
		}
		if n, err := b.db.PurgeKeys(t.Context(), 24*time.Hour); n != 1 || err != nil {
			t.Fatalf("purged %d, %v, want 1", n, err)
		}
		if again, replayed, err := b.Place(t.Context(), buy("key", "mug", 1)); err != nil || replayed || again.ID == first.ID {
			t.Errorf("purged: %s, replayed %v, %v, want a new order", again.ID, replayed, err)
		}
		if n := b.audit(t, "mug").Orders; n != 2 {
			t.Errorf("%d orders, want 2", n)
		}
	})
}

// A key may be purged after a transaction has found it taken, and before the order of the key is read. Then nothing was
// changed, and a retry is safe.
func TestService_keyPurgedMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db).by("conditional") // no lock, so that the twin can come in between
		b.supply(t, "mug", 10)
		o := b.place(t, "k1", "mug", 1)
		s := b.another(t)
		g := s.spy
		twin := func(ask func() error) {
			g.beforeTx = func() error {
				g.beforeTx = nil
				if err := ask(); err != nil {
					t.Errorf("twin: %v", err)
				}
				return nil
			}
			g.answer = func(err error) error {
				g.answer = nil
				if _, failed := b.db.PurgeKeys(t.Context(), -time.Minute); failed != nil {
					t.Error(failed)
				}
				return err
			}
		}
		r := buy("k2", "mug", 1)
		twin(func() error { _, _, err := b.Place(t.Context(), r); return err })
		if _, _, err := s.Place(t.Context(), r); !errors.Is(err, order.ErrBusy) || errors.Is(err, order.ErrKeyTaken) {
			t.Errorf("place: %v, want ErrBusy", err)
		}
		twin(func() error { _, err := b.Pay(t.Context(), withKey(o, "k3")); return err })
		if _, err := s.Pay(t.Context(), withKey(o, "k3")); !errors.Is(err, order.ErrBusy) || errors.Is(err, order.ErrNotFound) {
			t.Errorf("pay: %v, want ErrBusy", err)
		}
		b.wantEnd(t, o, order.Paid, "mug", stock.Level{Supplied: 10, Available: 8, Reserved: 1, Sold: 1})
	})
}

// "ExpireDue expires at most limit due orders of all SKUs, those first that have been due for longest", and leaves the
// others.
func TestService_ExpireDue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
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

// "An order that cannot be expired does not delay the others: the error counts such orders and names the first."
func TestService_ExpireDue_passesOver(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "bad", 10)
		b.supply(t, "mug", 10)
		stuck, second, fine := b.place(t, "k1", "bad", 2), b.place(t, "k2", "bad", 1), b.place(t, "k3", "mug", 2)
		b.makeDue(t, stuck, second, fine)
		level := func(available, reserved int) {
			b.exec(t, "UPDATE skus SET available = ?, reserved = ? WHERE name = 'bad'", available, reserved)
		}
		level(10, 0) // as a lost update leaves it
		n, err := b.ExpireDue(t.Context(), 1)
		if n != 1 || !errors.Is(err, order.ErrNotReserved) || !strings.HasPrefix(err.Error(), "2 orders; the first: expire order "+stuck.ID) {
			t.Errorf("expired %d, %v, want 1 and an ErrNotReserved for the 2 others", n, err)
		}
		b.wantEnd(t, fine, order.Expired, "mug", stock.Level{Supplied: 10, Available: 10})
		level(7, 3)
		b.wantEnd(t, stuck, order.Pending, "bad", stock.Level{Supplied: 10, Available: 7, Reserved: 3})
	})
}

// "One transaction expires the orders of a page", of all SKUs.
func TestService_ExpireDue_together(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		b := setup(t, database.Migrated(t))
		var orders []order.Order
		for _, sku := range []string{"mug", "hat", "pen"} {
			b.supply(t, sku, 40)
			for i := range 20 {
				orders = append(orders, b.mustPlace(t, purchase(fmt.Sprint("buyer", i), sku, sku, 2)))
			}
		}
		b.makeDue(t, orders...)
		if _, err := b.Pay(t.Context(), payment(orders[1])); !errors.Is(err, order.ErrExpired) {
			t.Fatal(err)
		}
		var commits atomic.Int64
		counting := func(statement string) testserver.Fate {
			if statement == "COMMIT" {
				commits.Add(1)
			}
			return testserver.Pass
		}
		n, err := setup(t, database.Through(t, counting).Open(t)).ExpireDue(t.Context(), 100)
		if n != 59 || err != nil || commits.Load() != 1 {
			t.Errorf("expired %d with %d commits, %v, want 59 with 1", n, commits.Load(), err)
		}
		for _, o := range orders {
			b.wantEnd(t, o, order.Expired, o.Lines[0].SKU, stock.Level{Supplied: 40, Available: 40})
		}
	})
}

// "An order that cannot be expired does not delay the others", even if another transaction locks a row that it needs
// for longer than the database waits. The sweep tries the row again once.
func TestService_ExpireDue_locked(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		for name, c := range map[string]struct {
			hold    func(tx order.Tx, o order.Order) error
			expired int
			says    string
		}{
			"order": {func(tx order.Tx, o order.Order) error {
				_, err := tx.LockOrders(o.ID)
				return err
			}, 4, "<nil>"},
			"SKU": {func(tx order.Tx, o order.Order) error {
				_, err := tx.LockLevels(o.SKUs())
				return err
			}, 2, "3 orders; the first: expire order "},
			"units of the buyer": {func(tx order.Tx, o order.Order) error {
				_, _, err := tx.LockBought(order.BuyerSKU{Buyer: o.Buyer, SKU: "bad"})
				return err
			}, 4, "expire order "},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				database := kind.New(t, "wait_timeout=60")
				b := setup(t, database.Migrated(t))
				b.supply(t, "bad", 10)
				b.supply(t, "mug", 10)
				b.limit(t, "bad", 1)
				var orders []order.Order
				for i, sku := range []string{"bad", "bad", "mug", "bad", "mug"} {
					orders = append(orders, b.mustPlace(t, purchase(fmt.Sprint(i), "key", sku, 1)))
				}
				b.makeDue(t, orders...)
				var begun atomic.Int64
				sweeper := setup(t, database.Through(t, func(statement string) testserver.Fate {
					if statement == "START TRANSACTION" {
						begun.Add(1)
					}
					return testserver.Pass
				}).Open(t))
				enough := errors.New("enough")
				err := b.db.InTx(t.Context(), func(tx order.Tx) error {
					if err := c.hold(tx, orders[0]); err != nil {
						return err
					}
					n, err := sweeper.ExpireDue(t.Context(), 10)
					if n != c.expired || !strings.HasPrefix(fmt.Sprint(err), c.says) {
						t.Errorf("expired %d, %v, want %d, %s", n, err, c.expired, c.says)
					}
					if begun.Load() > 2 {
						t.Errorf("the sweep has begun %d transactions, want 2: for the page, and for the first order behind the lock", begun.Load())
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

// "Locked rows do not end it": a locked SKU with more due orders than one page does not delay the others.
func TestService_ExpireDue_lockedPage(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		b := setup(t, kind.New(t, "wait_timeout=60").Migrated(t))
		b.supply(t, "bad", 200)
		b.supply(t, "mug", 10)
		orders := make([]order.Order, 110)
		atOnce(len(orders), func(i int) { orders[i] = b.mustPlace(t, purchase(nth(i), "key", "bad", 1)) })
		mug := b.place(t, "mug", "mug", 1)
		b.makeDue(t, append(orders, mug)...) // in this order
		enough := errors.New("enough")
		err := b.db.InTx(t.Context(), func(tx order.Tx) error {
			if _, err := tx.LockLevels([]string{"bad"}); err != nil {
				return err
			}
			if n, err := b.ExpireDue(t.Context(), 200); n != 1 || !errors.Is(err, order.ErrLocked) {
				t.Errorf("expired %d, %v, want 1 and an ErrLocked", n, err)
			}
			return enough
		})
		wantErr(t, "transaction", err, enough)
		b.wantEnd(t, mug, order.Expired, "mug", stock.Level{Supplied: 10, Available: 10})
	})
}

// "A sweep ends if the database is too busy for a whole page or does not answer, or if ctx ends."
func TestService_ExpireDue_lost(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		b := setup(t, database.Migrated(t))
		b.supply(t, "mug", 10)
		var orders []order.Order
		for i := range 5 {
			orders = append(orders, b.place(t, fmt.Sprint(i), "mug", 1))
		}
		b.makeDue(t, orders...)
		var lost atomic.Bool
		losing := func(statement string) testserver.Fate {
			if lost.Load() || statement == "START TRANSACTION" {
				lost.Store(true)
				return testserver.Drop
			}
			return testserver.Pass
		}
		cut := setup(t, database.Through(t, losing).Open(t))
		n, err := cut.ExpireDue(t.Context(), 10)
		if n != 0 || !errors.Is(err, order.ErrBusy) {
			t.Errorf("expired %d, %v, want an ErrBusy", n, err)
		}
		if n, err := b.ExpireDue(t.Context(), 10); n != len(orders) || err != nil {
			t.Errorf("expired %d, %v, want %d", n, err, len(orders))
		}
	})
}
