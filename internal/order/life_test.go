package order_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// ends are the ways in which a buyer ends an order.
func ends(s *order.Service) map[order.Status]func(context.Context, order.EndRequest) (order.Ended, error) {
	return map[order.Status]func(context.Context, order.EndRequest) (order.Ended, error){
		order.Paid: s.Pay, order.Cancelled: s.Cancel,
	}
}

// stocked is ann's request of three new SKUs of three units: for one unit of the first, two of the second, and all of
// the third.
func (b *bundle) stocked(t *testing.T, key string) order.Request {
	t.Helper()
	r := cart(key)
	for i := range 3 {
		sku := fmt.Sprint(key, i)
		b.supply(t, sku, 3)
		r.Lines = append(r.Lines, order.RequestLine{SKU: sku, Units: int64(i + 1)})
	}
	return r
}

// wantEndOfAll fails unless an order of stocked units has this status, and each line's units were sold, or given back,
// once.
func (b *bundle) wantEndOfAll(t *testing.T, o order.Order, status order.Status) {
	t.Helper()
	for _, line := range o.Lines {
		want := stock.Level{Supplied: 3, Available: 3}
		if status == order.Paid {
			want = stock.Level{Supplied: 3, Available: 3 - line.Units, Sold: line.Units}
		}
		b.wantEnd(t, o, status, line.SKU, want)
	}
}

// "Pay makes the buyer's pending order paid [...]: its units become sold." "An order that is paid already is returned
// as it is." "Cancel makes the buyer's pending order cancelled: its units become available", once, and can be sold again.
func TestService_ends(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		for as, end := range ends(b.Service) {
			r := b.stocked(t, string(as))
			o := b.mustPlace(t, r)
			_, err := end(t.Context(), order.EndRequest{Buyer: "bob", OrderID: o.ID})
			wantErr(t, "another buyer", err, order.ErrNotFound)
			for range 3 {
				if got, err := end(t.Context(), payment(o)); err != nil || got.Status != as || got.Total != o.Total {
					t.Errorf("got %+v, %v, want it %s", got, err, as)
				}
			}
			for other, end := range ends(b.Service) {
				if other != as {
					_, err := end(t.Context(), payment(o))
					wantState(t, err, as)
				}
			}
			b.makeDue(t, o)
			if n, err := b.ExpireDue(t.Context(), 10); n != 0 || err != nil {
				t.Errorf("expired %d, %v, want none: it is %s", n, err, as)
			}
			again, replayed, err := b.Place(t.Context(), r)
			if err != nil || !replayed || again.ID != o.ID || again.Status != order.Pending {
				t.Errorf("replay: %+v, %v, %v, want the order as it was placed", again, replayed, err)
			}
			b.wantEndOfAll(t, o, as)
		}
		b.place(t, "again", string(order.Cancelled)+"2", 3)
	})
}

// "A late payment is refused, also before a sweep has found the order", also one that is due, and that no sweep has
// expired yet.
func TestService_Pay_late(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		for as, end := range ends(b.Service) {
			for _, swept := range []bool{false, true} {
				o := b.mustPlace(t, b.stocked(t, fmt.Sprint(as, swept)))
				b.makeDue(t, o)
				if swept {
					if n, err := b.ExpireDue(t.Context(), 10); n != 1 || err != nil {
						t.Errorf("expired %d, %v, want 1", n, err)
					}
				}
				for range 2 {
					_, err := end(t.Context(), payment(o))
					wantState(t, err, order.Expired)
				}
				if n, err := b.ExpireDue(t.Context(), 10); n != 0 || err != nil {
					t.Errorf("expired %d again, %v, want 0", n, err)
				}
				b.wantEndOfAll(t, o, order.Expired)
			}
		}
	})
}

// awaitDue returns when the order is due by the database's clock.
func (b *bundle) awaitDue(t *testing.T, o order.Order) {
	t.Helper()
	due, err := b.Order(t.Context(), o.Buyer, o.ID)
	for now := (time.Time{}); err == nil && now.Before(due.ExpiresAt); {
		now, err = b.db.Now(t.Context())
	}
	if err != nil {
		t.Error(err)
	}
}

// "Payment and expiry at the same instant end as exactly one of the two": the first has changed the rows and is about
// to commit when the second begins.
func TestService_payAgainstExpiry(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "expiry", 5)
		o := b.place(t, "expiry", "expiry", 2)
		if pay, sweep := b.race(t, o, 0, false); sweep != nil || !errors.Is(pay, order.ErrExpired) {
			t.Errorf("expiry first: sweep %v, pay %v, want ErrExpired", sweep, pay)
		}
		b.wantEnd(t, o, order.Expired, "expiry", stock.Level{Supplied: 5, Available: 5})

		// The payment must be in time, and then its time must be over: on a slow machine that takes another try.
		for left := 500 * time.Millisecond; ; left *= 2 {
			name := fmt.Sprint("pay-", left)
			b.supply(t, name, 5)
			o := b.place(t, name, name, 2)
			pay, sweep := b.race(t, o, left, true)
			if errors.Is(pay, order.ErrExpired) && left < time.Minute {
				continue
			}
			if pay != nil || sweep != nil {
				t.Errorf("payment first: pay %v, sweep %v", pay, sweep)
			}
			b.wantEnd(t, o, order.Paid, name, stock.Level{Supplied: 5, Available: 3, Sold: 2})
			return
		}
	})
}

// race pays an order that has some time left, and sweeps when that is over. The second begins when the first has
// changed the rows and not yet committed.
func (b *bundle) race(t *testing.T, o order.Order, left time.Duration, payFirst bool) (pay, sweep error) {
	t.Helper()
	one, two := b.another(t), b.another(t)
	doPay := func(s *bundle) { _, pay = s.Pay(t.Context(), payment(o)) }
	doSweep := func(s *bundle) { _, sweep = s.ExpireDue(t.Context(), 1) }
	first, second := doSweep, doPay
	if payFirst {
		first, second = doPay, doSweep
	}
	b.expireIn(t, o, left)
	begun, done := make(chan struct{}), make(chan struct{})
	two.spy.beforeTx = func() error { two.spy.beforeTx = nil; close(begun); return nil }
	one.spy.beforeCommit = func() {
		one.spy.beforeCommit = nil
		b.awaitDue(t, o)
		go func() { defer close(done); second(two) }()
		select {
		case <-begun:
		case <-done: // it failed before
		}
	}
	if first(one); one.spy.beforeCommit != nil {
		t.Fatalf("the first came to no commit: pay %v, sweep %v", pay, sweep)
	}
	<-done
	return pay, sweep
}

// "A payment and a cancellation may have a key, under the same rules and beside the keys of orders: one key cannot
// serve two requests."
func TestService_end_key(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		for as, end := range ends(b.Service) {
			sku, key := "mug-"+string(as), "end-"+string(as)
			b.supply(t, sku, 10)
			o, other := b.place(t, "first-"+sku, sku, 1), b.place(t, "second-"+sku, sku, 1)
			first, err := end(t.Context(), withKey(o, key))
			if err != nil || !first.First || first.Replayed || first.Status != as {
				t.Fatalf("%s: %+v, %v, want the first answer", as, first, err)
			}
			for range 2 {
				again, err := end(t.Context(), withKey(o, key))
				if err != nil || again.First || !again.Replayed {
					t.Errorf("%s again: %+v, %v, want a replay", as, again, err)
				}
				if diff := cmp.Diff(first.Order, again.Order); diff != "" {
					t.Errorf("%s again (-first +again):\n%s", as, diff)
				}
			}
			for name, reuse := range map[string]func() error{
				"another order": func() error { _, err := end(t.Context(), withKey(other, key)); return err },
				"pay":           func() error { _, err := b.Pay(t.Context(), withKey(other, key)); return err },
				"cancel":        func() error { _, err := b.Cancel(t.Context(), withKey(other, key)); return err },
				"place":         func() error { _, _, err := b.Place(t.Context(), buy(key, sku, 1)); return err },
				"a placing key": func() error { _, err := end(t.Context(), withKey(other, "second-"+sku)); return err },
			} {
				if err := reuse(); !errors.Is(err, order.ErrKeyReused) {
					t.Errorf("%s with the key that %s: %v, want ErrKeyReused", name, as, err)
				}
			}
			b.wantEnd(t, other, order.Pending, sku, b.audit(t, sku).Level)
		}
		b.wantKeys(t, 6)
	})
}

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
		wantState(t, err, order.Paid)
		_, err = b.Pay(t.Context(), withKey(due, "key"))
		wantState(t, err, order.Expired)
		foreign := withKey(open, "key")
		foreign.Buyer = "bob"
		if _, err := b.Pay(t.Context(), foreign); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("another buyer: %v, want ErrNotFound", err)
		}
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

// "That holds for as long as the key is kept": once it is purged it makes a new order; until then it counts, however old it is.
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

// A key may be purged between the transaction that finds it taken and the look for what it made: then nothing was
// changed, and asking again is safe.
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

// "ExpireDue expires at most limit orders that are due, of all SKUs, the longest due first", and leaves the others.
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

// "An order that cannot be expired keeps no other from it: the error counts such orders and names the first."
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

// "The orders of a page are expired in one transaction", of all SKUs.
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

// "An order that cannot be expired keeps no other from it": also one whose row, or whose SKU's row, another transaction
// holds for longer than the database waits.
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
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t))
				b.supply(t, "bad", 10)
				b.supply(t, "mug", 10)
				var orders []order.Order
				for i, sku := range []string{"bad", "bad", "mug", "bad", "mug"} {
					orders = append(orders, b.place(t, fmt.Sprint(i), sku, 1))
				}
				b.makeDue(t, orders...)
				enough := errors.New("enough")
				err := b.db.InTx(t.Context(), func(tx order.Tx) error {
					if err := c.hold(tx, orders[0]); err != nil {
						return err
					}
					n, err := b.ExpireDue(t.Context(), 10)
					if n != c.expired || !strings.HasPrefix(fmt.Sprint(err), c.says) {
						t.Errorf("expired %d, %v, want %d, %s", n, err, c.expired, c.says)
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

// "A sweep ends where the database is too busy for a whole page, does not answer, or ctx ends."
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
