package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// An order is read back as it was placed, by id and by key. "UsedKeys returns the keys that are on record."
func TestStore_Claims(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 1000, "mug", "hat")
		want := map[order.BuyerKey]order.UsedKey{}
		var keys []order.BuyerKey
		for i := range 256 {
			buyer, key := fmt.Sprint("buyer-", i%7), fmt.Sprint("key-", i)
			keys = append(keys, order.BuyerKey{Buyer: buyer, Key: key}, order.BuyerKey{Buyer: "nobody", Key: key})
			if i%50 != 0 {
				continue
			}
			d := draft(buyer, key, "mug", "hat") // not in the order of names
			s.mustPlace(t, d)
			want[order.BuyerKey{Buyer: buyer, Key: key}] = order.UsedKey{Order: d.Order, Fingerprint: d.Fingerprint}
			read, err := s.Orders(t.Context(), order.NewID(), d.ID)
			if diff := cmp.Diff([]order.Order{d.Order}, read); err != nil || diff != "" {
				t.Errorf("by id: %v (-want +got):\n%s", err, diff)
			}
		}
		s.mustPlace(t, draft("buyer-0", "key-1", "mug")) // a key of this name, but of another buyer
		got, err := s.UsedKeys(t.Context(), keys...)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if got, err := s.UsedKeys(t.Context()); err != nil || len(got) != 0 {
			t.Errorf("no keys: got %v, %v", got, err)
		}
		s.wantClean(t)
	})
}

// "If the database does not answer, a read returns ErrBusy." The end of a ctx is reported as such.
func TestStore_readsFail(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		var lost atomic.Bool
		s := newShop(t, kind.New(t, "").Through(t, func(string) testserver.Fate {
			if lost.Load() {
				return testserver.Drop
			}
			return testserver.Pass
		}).Migrated(t), 10, "mug")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, read := range map[string]func(ctx context.Context) error{
			"UsedKeys": func(ctx context.Context) error {
				_, err := s.UsedKeys(ctx, order.BuyerKey{Buyer: "ann", Key: "k"})
				return err
			},
			"Orders":    func(ctx context.Context) error { _, err := s.Orders(ctx, order.NewID()); return err },
			"OfBuyer":   func(ctx context.Context) error { _, err := s.OfBuyer(ctx, "ann", "", 1); return err },
			"Due":       func(ctx context.Context) error { _, err := s.Due(ctx, order.Order{}, 1); return err },
			"Audit":     func(ctx context.Context) error { return s.Audit(ctx, "", ignoreAccount, ignoreDifference) },
			"SKU":       func(ctx context.Context) error { _, err := s.SKU(ctx, "mug"); return err },
			"Levels":    func(ctx context.Context) error { _, err := s.Levels(ctx, order.Line{SKU: "mug"}); return err },
			"List":      func(ctx context.Context) error { _, err := s.List(ctx, "", 10); return err },
			"Movements": func(ctx context.Context) error { _, err := s.Movements(ctx, "mug", "", 10); return err },
			"Now":       func(ctx context.Context) error { _, err := s.Now(ctx); return err },
			"HasRun":    func(ctx context.Context) error { _, err := s.HasRun(ctx, "job", "day"); return err },
			"Pending":   func(ctx context.Context) error { _, err := s.Pending(ctx); return err },
		} {
			lost.Store(false)
			if err := read(ended); !errors.Is(err, context.Canceled) || errors.Is(err, order.ErrBusy) {
				t.Errorf("%s, cancelled: got %v, want context.Canceled", name, err)
			}
			lost.Store(true)
			if err := read(t.Context()); !errors.Is(err, order.ErrBusy) {
				t.Errorf("%s, connection lost: got %v, want ErrBusy", name, err)
			}
		}
	})
}

// "At most limit of the buyer's orders, the latest first. If before is not empty, it returns the orders whose ids sort
// before that id."
func TestStore_OfBuyer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 100, "mug", "hat")
		var anns []order.Order
		for i := range 5 {
			d := draft("ann", fmt.Sprint("k", i), "mug", "hat")
			s.mustPlace(t, d, draft("bob", fmt.Sprint("k", i), "hat"), draft("Ann", fmt.Sprint("k", i), "hat"))
			anns = append(anns, d.Order)
		}
		slices.Reverse(anns)
		for _, c := range []struct {
			before string
			limit  int
			want   []order.Order
		}{
			{"", 100, anns}, {"", 5, anns}, {"", 2, anns[:2]}, {anns[1].ID, 2, anns[2:4]}, {anns[3].ID, 2, anns[4:]},
			{anns[4].ID, 2, []order.Order{}}, {order.NewID(), 1, anns[:1]}, // of no order
		} {
			got, err := s.OfBuyer(t.Context(), "ann", c.before, c.limit)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%d before %q: %v (-want +got):\n%s", c.limit, c.before, err, diff)
			}
		}
		if got, err := s.OfBuyer(t.Context(), "cid", "", 10); err != nil || len(got) > 0 {
			t.Errorf("got %v, %v, want no orders of a buyer who has none", got, err)
		}
	})
}

// "At most limit orders that are pending and due by the database's clock, sorted by ExpiresAt and ID. It returns only
// orders that follow the order after."
func TestStore_Due(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 100, "mug")
		now, err := s.Now(t.Context())
		testserver.Must(t, err)
		var due []order.Order
		for i, ago := range []time.Duration{time.Hour, time.Minute, time.Minute, time.Second, -time.Hour} {
			d := draft("ann", fmt.Sprint("k", i), "mug")
			d.ExpiresAt = now.Add(-ago)
			s.mustPlace(t, d)
			if ago > 0 {
				due = append(due, d.Order)
			}
		}
		ended := draft("ann", "ended", "mug")
		ended.Status, ended.ExpiresAt = order.Cancelled, now.Add(-time.Hour)
		s.mustPlace(t, ended)
		for after, last := 0, (order.Order{}); after < len(due); after += 2 {
			got, err := s.Due(t.Context(), last, 2)
			if diff := cmp.Diff(due[after:after+2], got); err != nil || diff != "" {
				t.Fatalf("from %d on: %v (-want +got):\n%s", after, err, diff)
			}
			last = got[1]
		}
	})
}

// "LockOrders locks the rows of these orders until this transaction has ended, and returns the existing orders by
// id. It does not wait for rows that other transactions have locked." The database's clock decides which are due.
func TestTx_LockOrders(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 100, "mug")
		due, paid, other := draft("ann", "k1", "mug"), draft("ann", "k2", "mug"), draft("ann", "k3", "mug")
		due.ExpiresAt, paid.Status = placedAt, order.Paid
		s.mustPlace(t, due, paid, other)
		ids := []string{due.ID, order.NewID(), paid.ID, other.ID}
		lock := func() (found map[string]order.Found) {
			err := s.InTx(t.Context(), func(tx order.Tx) (err error) {
				found, err = tx.LockOrders(ids...)
				return err
			})
			testserver.Must(t, err)
			return found
		}
		want := map[string]order.Found{
			due.ID: {Order: due.Order, Due: true, Locked: true}, paid.ID: {Order: paid.Order, Locked: true},
			other.ID: {Order: other.Order, Locked: true},
		}
		if diff := cmp.Diff(want, lock()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if s.IsSQLite() { // it has one writer
			return
		}
		want[other.ID] = order.Found{Order: other.Order}
		err := s.InTx(t.Context(), func(tx order.Tx) error {
			if _, err := tx.LockOrders(other.ID); err != nil {
				return err
			}
			if diff := cmp.Diff(want, lock()); diff != "" {
				t.Errorf("with one order locked (-want +got):\n%s", diff)
			}
			return nil
		})
		testserver.Must(t, err)
	})
}

// "LockBuyers locks the rows of these buyers until this transaction has ended", and no other buyer's: neither while the
// row is made nor when it is there, and in no gap beside it.
func TestTx_LockBuyers(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t), 10)
		lock := func(buyer string) error {
			return s.InTx(t.Context(), func(tx order.Tx) error { return lockBuyer(tx, buyer) })
		}
		for _, round := range []string{"new rows", "rows that are there"} {
			err := s.InTx(t.Context(), func(tx order.Tx) error {
				if err := lockBuyer(tx, "bob"); err != nil {
					return err
				}
				for _, other := range []string{"boa", "bo", "bobby", "Bob", "bob.", "ann", "zoe"} {
					if err := lock(other); err != nil {
						t.Errorf("%s: %s waits for bob: %v", round, other, err)
					}
				}
				if err := lock("bob"); !errors.Is(err, order.ErrBusy) {
					t.Errorf("%s: bob again: got %v, want ErrBusy", round, err)
				}
				return nil
			})
			testserver.Must(t, err)
		}
	})
}

// LockBuyers returns exactly the buyers whose rows another transaction has locked, and waits for none of them.
func TestTx_LockBuyers_others(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "innodb_lock_wait_timeout=600").Migrated(t), 10)
		all := []string{"a", "b", "c", "d", "e"}
		lock := func(buyers []string) (others []string) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := s.InTx(ctx, func(tx order.Tx) (err error) {
				others, err = tx.LockBuyers(buyers...)
				return err
			})
			if err != nil {
				t.Errorf("%v: %v", buyers, err)
			}
			return others
		}
		lock(all[:4]) // a new row for e
		for set := range 16 {
			var locked []string
			for i, buyer := range all[:4] {
				if set>>i&1 == 1 {
					locked = append(locked, buyer)
				}
			}
			s.undone(t, func(holder order.Tx) error {
				if _, err := holder.LockBuyers(locked...); err != nil {
					return err
				}
				if others := lock(all); !slices.Equal(others, locked) {
					t.Errorf("%v are locked: got %v", locked, others)
				}
				return nil
			})
		}
	})
}

// Open "is exact after LockBuyers": a transaction that was refused there, and comes again, counts the
// order for which it was refused.
func TestTx_Open(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug")
		later := draft("ann", "k2", "mug")
		later.ExpiresAt = farOff.AddDate(1, 0, 0)
		s.mustPlace(t, later, draft("bob", "k1", "mug"))
		count := func() (open map[string]order.OpenOrders, err error) {
			err = s.InTx(t.Context(), func(tx order.Tx) error {
				if err := lockBuyer(tx, "ann"); err != nil {
					return err
				}
				open, err = tx.Open("ann", "bob", "zoe")
				return err
			})
			return open, err
		}
		want := map[string]order.OpenOrders{"ann": {Count: 2, First: farOff}, "bob": {Count: 1, First: farOff}}
		counted, committed := make(chan error, 1), make(chan struct{})
		err := s.InTx(t.Context(), func(tx order.Tx) error {
			if err := lockBuyer(tx, "ann"); err != nil {
				return err
			}
			refused := make(chan struct{})
			go func() {
				open, err := count()
				close(refused)
				if errors.Is(err, order.ErrLocked) {
					<-committed
					open, err = count()
				}
				if diff := cmp.Diff(want, open); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				counted <- err
			}()
			if !s.IsSQLite() { // where it waits for this transaction
				<-refused
			}
			return write(tx, draft("ann", "k1", "mug"))
		})
		close(committed)
		testserver.Must(t, errors.Join(err, <-counted))
	})
}

// "LockBought returns the units of limited SKUs in buyers' pending and paid orders". "AddBought adds to the numbers
// that LockBought returns: units of placed orders or, negative, of orders that are cancelled or have expired."
func TestTx_Bought(t *testing.T) {
	t.Parallel()
	type units = map[order.BuyerSKU]int64
	annMug, annCup := order.BuyerSKU{Buyer: "ann", SKU: "mug"}, order.BuyerSKU{Buyer: "ann", SKU: "cup"}
	bobMug := order.BuyerSKU{Buyer: "bob", SKU: "mug"}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, step := range []struct{ add, want units }{
			{nil, units{}},
			{units{annMug: 2, bobMug: 1, annCup: 4}, units{annMug: 2, annCup: 4}},
			{units{annMug: 3, bobMug: 1}, units{annMug: 5, annCup: 4}},
			{units{annMug: -1, annCup: -4}, units{annMug: 4, annCup: 0}},
		} {
			var bought units
			err := s.InTx(t.Context(), func(tx order.Tx) (err error) {
				if err := tx.AddBought(step.add); err != nil {
					return err
				}
				bought, _, err = tx.LockBought(annMug, annCup, order.BuyerSKU{Buyer: "zoe", SKU: "mug"})
				return err
			})
			if diff := cmp.Diff(step.want, bought); diff != "" || err != nil {
				t.Errorf("after %v: %v (-want +got):\n%s", step.add, err, diff)
			}
		}
	})
}

func (s shop) purge(t testing.TB, keep time.Duration, want int) {
	t.Helper()
	if n, err := s.PurgeKeys(t.Context(), keep); n != want || err != nil {
		t.Errorf("purged %d, %v, want %d", n, err, want)
	}
}

// "PurgeKeys deletes the idempotency keys that are older than keep", in more than one batch. Then the keys may be used
// again. An audit that runs meanwhile sees all keys or knows of the mark.
func TestStore_PurgeKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 1000, "mug")
		for i := range 2*100 + 3 {
			storetest.Exec(t, s.Store,
				fmt.Sprintf("INSERT INTO idempotency_keys VALUES ('ann', 'old-%d', 'f', 'o', '2026-01-01 00:00:00.000000')", i))
		}
		s.purge(t, 24*time.Hour, 203)
		s.placedAgo(t, 25*time.Hour, draft("ann", "k1", "mug"))
		s.placedAgo(t, 23*time.Hour, draft("ann", "k2", "mug"))
		err := s.Audit(t.Context(), "", func(stock.Account) error { s.purge(t, 24*time.Hour, 1); return nil }, func(d stock.Difference) error {
			t.Errorf("got %+v, want no difference", d)
			return nil
		})
		testserver.Must(t, err)
		s.purge(t, 24*time.Hour, 0)
		s.wantClean(t)
		s.placedAgo(t, 0, draft("ann", "k1", "mug"))
		if err := s.place(t.Context(), draft("ann", "k2", "mug")); !errors.Is(err, order.ErrKeyTaken) {
			t.Errorf("a key that is not purged: got %v, want ErrKeyTaken", err)
		}
		s.wantRows(t, rows{Orders: 3, Lines: 3, Movements: 4, Keys: 2})
		s.wantClean(t)
	})
}

// "A key that is older than its order stays until the order is older than keep": a batch claims the key, and then waits
// for the SKU whose row has the time of the order. The other way round, the key is deleted with the others.
func TestStore_PurgeKeys_keyOlderThanOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 100, "mug")
		s.placedAgo(t, 25*time.Hour, draft("ann", "old", "mug"), draft("ann", "older key", "mug"), draft("ann", "older order", "mug"))
		now, err := s.Now(t.Context())
		testserver.Must(t, err)
		young := now.Add(-time.Hour).Format("2006-01-02 15:04:05.000000")
		storetest.Exec(t, st, "UPDATE orders SET created_at = '"+young+"' WHERE idempotency_key = 'older key'",
			"UPDATE idempotency_keys SET created_at = '"+young+"' WHERE idempotency_key = 'older order'")
		s.purge(t, 24*time.Hour, 1)
		s.wantClean(t)
		s.purge(t, 0, 2)
		s.wantClean(t)
	})
}

// To the audit, an order that is younger than the purge's mark and lacks its key is a difference; an older one is not.
// The mark never goes back.
func TestStore_PurgeKeys_mark(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug")
		s.placedAgo(t, 2*time.Hour, draft("ann", "old", "mug"))
		s.placedAgo(t, time.Minute, draft("ann", "young", "mug"))
		storetest.Exec(t, s.Store, "DELETE FROM idempotency_keys")
		for _, c := range []struct {
			keep time.Duration
			want int
		}{{24 * time.Hour, 2}, {time.Hour, 1}, {24 * time.Hour, 1}, {0, 0}} {
			s.purge(t, c.keep, 0)
			if _, found := s.audit(t, ""); len(found) != c.want {
				t.Errorf("keep %v: got %v, want %d differences", c.keep, found, c.want)
			}
		}
	})
}

// The purge does not "wait for keys that buyers insert", nor they for it: before it commits, they place orders with
// keys beside those that it has deleted. A key that was found old and is in use again when it is deleted stays.
func TestStore_PurgeKeys_beforeItCommits(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "innodb_lock_wait_timeout=2")
		s := newShop(t, database.Migrated(t), 100, "mug")
		s.placedAgo(t, 25*time.Hour, draft("ann", "k1", "mug"), draft("ann", "k3", "mug"))
		beside := sync.OnceFunc(func() {
			s.placedAgo(t, 0, draft("ann", "k0", "mug"), draft("ann", "k2", "mug"), draft("ann", "k4", "mug"))
		})
		purger := shop{database.Through(t, at("COMMIT", testserver.Pass, beside)).Open(t)}
		purger.purge(t, 24*time.Hour, 2)
		s.wantRows(t, rows{Orders: 5, Lines: 5, Movements: 6, Keys: 3})

		s.placedAgo(t, 25*time.Hour, draft("ann", "k5", "mug"))
		again := sync.OnceFunc(func() {
			s.purge(t, 24*time.Hour, 1)
			s.placedAgo(t, 0, draft("ann", "k5", "mug"))
		})
		purger = shop{database.Through(t, at("DELETE", testserver.Pass, again)).Open(t)}
		purger.purge(t, 24*time.Hour, 0)
		s.wantRows(t, rows{Orders: 7, Lines: 7, Movements: 8, Keys: 4})
		s.wantClean(t)
	})
}

// "HasRun reports whether a daily job has run for a day". NoteRun "reports whether this is the first note".
func TestStore_runs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, want := range []bool{true, false} {
			if first, err := s.NoteRun(t.Context(), "a", "2026-01-01"); first != want || err != nil {
				t.Fatalf("got %v, %v, want %v", first, err, want)
			}
		}
		for _, c := range []struct {
			job, day string
			want     bool
		}{{"a", "2026-01-01", true}, {"a", "2026-01-02", false}, {"b", "2026-01-01", false}} {
			if got, err := s.HasRun(t.Context(), c.job, c.day); got != c.want || err != nil {
				t.Errorf("job %s, %s: got %v, %v, want %v", c.job, c.day, got, err, c.want)
			}
		}
	})
}
