package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// Whatever ends a transaction before its COMMIT changes no row and leaves no lock: an error of fn, which comes back as
// it is, a panic, a refusal or failure that fn dropped, and a context that ends, whose error and cause are then in the
// error.
func TestStore_InTx_rollsBack(t *testing.T) {
	t.Parallel()
	mine, lost := errors.New("mine"), errors.New("lease lost")
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug")
		for name, c := range map[string]struct {
			fn   func(tx order.Tx, cancel func()) error
			want []error
		}{
			"error": {func(tx order.Tx, _ func()) error {
				return errors.Join(write(tx, draft("ann", "k1", "mug")), mine)
			}, []error{mine}},
			"panic": {func(tx order.Tx, _ func()) error {
				_ = write(tx, draft("ann", "k1", "mug"))
				panic("boom")
			}, nil},
			"refusal": {func(tx order.Tx, _ func()) error {
				return errors.Join(tx.Insert(draft("ann", "k1", "mug").Order), tx.Take(stock.Conditional, stock.Take{SKU: "mug", Units: 11}))
			}, []error{order.ErrSoldOut}},
			"cancelled before the first statement": {func(tx order.Tx, cancel func()) error {
				cancel()
				return write(tx, draft("ann", "k1", "mug"))
			}, []error{context.Canceled, lost}},
			"cancelled between two statements": {func(tx order.Tx, cancel func()) error {
				d := draft("ann", "k1", "mug")
				if err := claim(tx, d); err != nil {
					return err
				}
				cancel()
				return tx.Insert(d.Order)
			}, []error{context.Canceled, lost}},
			"cancelled after the last statement": {func(tx order.Tx, cancel func()) error {
				defer cancel()
				return write(tx, draft("ann", "k1", "mug"))
			}, []error{context.Canceled, lost}},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			err := func() (err error) {
				defer func() {
					if recover() != nil {
						err = errors.New("panicked")
					}
				}()
				return s.InTx(ctx, func(tx order.Tx) error { return c.fn(tx, func() { cancel(lost) }) })
			}()
			if err == nil {
				t.Errorf("%s: committed", name)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%s: got %v, want %v", name, err, want)
				}
			}
			cancel(lost)
			if err := s.place(ctx, draft("ann", "k1", "mug")); !errors.Is(err, context.Canceled) || !errors.Is(err, lost) {
				t.Errorf("%s: cancelled before it began: got %v, want context.Canceled and its cause", name, err)
			}
		}
		s.wantUntouched(t, 10)
		s.mustPlace(t, draft("ann", "k1", "mug"))
		s.wantRows(t, rows{Orders: 1, Lines: 1, Movements: 2, Keys: 1})
	})
}

// "After a deadlock, InTx runs fn again, a few times": two orders take the same SKUs in opposite order, and neither
// takes its second before both have their first.
func TestStore_InTx_retriesADeadlock(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "").Migrated(t), 10, "hat", "mug")
		var both, pair sync.WaitGroup
		both.Add(2)
		var runs atomic.Int64
		for buyer, skus := range map[string][]string{"ann": {"hat", "mug"}, "bob": {"mug", "hat"}} {
			pair.Go(func() {
				meet := sync.OnceFunc(func() { both.Done(); both.Wait() })
				err := s.InTx(t.Context(), func(tx order.Tx) error {
					runs.Add(1)
					if err := tx.Take(stock.Conditional, one(skus[0])); err != nil {
						return err
					}
					meet()
					return tx.Take(stock.Conditional, one(skus[1]))
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
		s.wantLevel(t, "hat", level(8, 2))
		s.wantLevel(t, "mug", level(8, 2))
	})
}

// "ErrLocked: a statement waited too long for a lock", of a key or a SKU. In MySQL the transaction "is STILL OPEN"
// after that: a COMMIT would save what its earlier statements did.
func TestStore_InTx_lockWait(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t), 10, "mug")
		for name, hold := range map[string]func(tx order.Tx) error{
			"key": func(tx order.Tx) error { return claim(tx, draft("ann", "k1", "mug")) },
			"SKU": func(tx order.Tx) error { return tx.Take(stock.Conditional, one("mug")) },
		} {
			s.undone(t, func(holder order.Tx) error {
				if err := hold(holder); err != nil {
					return err
				}
				if err := s.place(t.Context(), draft("ann", "k1", "mug")); !errors.Is(err, order.ErrLocked) {
					t.Errorf("%s is held: got %v, want ErrLocked", name, err)
				}
				return nil
			})
			s.wantUntouched(t, 10)
		}
		s.mustPlace(t, draft("ann", "k1", "mug"))
	})
}

// "If the instance stands still, the server ends the transaction after half of the wait_timeout":
// another one, which waits for less than the wait_timeout, gets its rows. "If the server has ended the
// connection", InTx runs fn again, once.
func TestStore_Sharing_standsStill(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := newShop(t, kind.New(t, "wait_timeout=4&innodb_lock_wait_timeout=3").Migrated(t), 10, "mug")
		runs := 0
		err := s.Sharing().InTx(t.Context(), func(holder order.Tx) error {
			if err := holder.Take(stock.Conditional, one("mug")); err != nil {
				return err
			}
			if runs++; runs == 1 {
				s.mustPlace(t, draft("ann", "k1", "mug")) // of two units
			}
			return holder.Take(stock.Conditional, one("mug"))
		})
		if err != nil || runs != 2 {
			t.Errorf("got %v after %d runs, want none after 2", err, runs)
		}
		s.wantLevel(t, "mug", level(6, 4))
	})
}

// In SQLite a conflict is a file that another process is writing to. The wait for it ends with ctx.
func TestStore_InTx_fileIsBusy(t *testing.T) {
	t.Parallel()
	database := storetest.Kinds()[0].New(t, "")
	s := newShop(t, database.Migrated(t), 10, "mug")
	other := shop{database.Open(t)}
	other.DB().SetMaxOpenConns(1)
	err := s.InTx(t.Context(), func(order.Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := other.place(ctx, draft("bob", "k1", "mug")); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 4*time.Second {
			t.Errorf("got %v after %v, want context.DeadlineExceeded before the busy_timeout of 5 s", err, time.Since(began))
		}
		storetest.Exec(t, other.Store, "PRAGMA busy_timeout = 1") // milliseconds
		busy := other.place(t.Context(), draft("bob", "k1", "mug"))
		if !errors.Is(busy, order.ErrBusy) || !strings.Contains(busy.Error(), "attempts") {
			t.Errorf("got %v, want ErrBusy after some attempts", busy)
		}
		return nil
	})
	testserver.Must(t, err)
	s.wantUntouched(t, 10)
}

// A context that ends cuts off a BEGIN without an answer and a statement that waits for a lock, and does not cut off a
// COMMIT.
func TestStore_InTx_heedsContextUntilCommit(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		s := newShop(t, database.Migrated(t), 10, "mug")
		run := func(word string, before func(cancel func())) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			through := database.Through(t, at(word, testserver.Pass, sync.OnceFunc(func() { before(cancel) }))).Open(t)
			err := through.InTx(ctx, func(tx order.Tx) error { return tx.Take(stock.Conditional, one("mug")) })
			if ctx.Err() == nil {
				t.Errorf("no %s was sent", word)
			}
			return err
		}
		silence := make(chan struct{})
		defer close(silence)
		if err := run("START TRANSACTION", func(cancel func()) { cancel(); <-silence }); !errors.Is(err, context.Canceled) {
			t.Errorf("BEGIN: got %v, want context.Canceled", err)
		}
		err := s.InTx(t.Context(), func(tx order.Tx) error {
			if err := tx.Take(stock.Conditional, one("mug")); err != nil {
				return err
			}
			if err := run("UPDATE", func(cancel func()) { cancel() }); !errors.Is(err, context.Canceled) {
				t.Errorf("UPDATE: got %v, want context.Canceled", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := run("COMMIT", func(cancel func()) { cancel() }); err != nil {
			t.Errorf("COMMIT: got %v, want it to go through", err)
		}
		s.wantLevel(t, "mug", level(8, 2))
	})
}

// "If InTx cannot find out, or no order was placed, it returns ErrUnknownOutcome": the transaction was done, or not. A
// connection that is lost before the COMMIT is ErrBusy: nothing was changed.
func TestStore_InTx_connectionIsLost(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		for name, c := range map[string]struct {
			word  string
			fate  testserver.Fate
			want  error
			taken int64
		}{
			"committed":     {"COMMIT", testserver.Mute, order.ErrUnknownOutcome, 1},
			"not committed": {"COMMIT", testserver.Drop, order.ErrUnknownOutcome, 0},
			"before":        {"UPDATE", testserver.Mute, order.ErrBusy, 0},
		} {
			database := kind.New(t, "")
			s := newShop(t, database.Migrated(t), 10, "mug")
			through := shop{database.Through(t, at(c.word, c.fate, nil)).Open(t)}
			err := through.take(t, stock.Conditional, one("mug"))
			if !errors.Is(err, c.want) || errors.Is(err, order.ErrBusy) && errors.Is(err, order.ErrUnknownOutcome) {
				t.Errorf("%s: got %v, want %v alone", name, err, c.want)
			}
			err = s.InTx(t.Context(), func(tx order.Tx) error { // the lock waits for the rollback
				levels, err := tx.LockLevels([]string{"mug"})
				if err == nil && levels.SKUs["mug"].Level != level(10-c.taken, c.taken) {
					t.Errorf("%s: got %v, want %d taken", name, levels.SKUs["mug"].Level, c.taken)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// "ClaimKeys writes the rows of idempotency keys, each for the ID of an order, in the order of their primary keys. It
// returns the keys that are already on record." "FreeKeys deletes the rows of keys that this transaction has claimed."
func TestTx_ClaimKeys_batch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		const n = 256
		s := newShop(t, st, 2*n+2, "mug")
		first := draft("ann", "key-100", "mug")
		s.mustPlace(t, first)
		var batch []*order.Draft
		for i := range n {
			batch = append(batch, draft("ann", fmt.Sprint("key-", i), "mug"))
		}
		s.undone(t, func(tx order.Tx) error {
			taken, err := tx.ClaimKeys(claims(batch...)...)
			if claim := taken[order.BuyerKey{Buyer: "ann", Key: "key-100"}]; err != nil || len(taken) != 1 || claim.Order.ID != first.ID {
				t.Errorf("with a key that is taken: got %v, %v", taken, err)
			}
			if err := tx.FreeKeys(order.BuyerKey{Buyer: "ann", Key: batch[7].Key}); err != nil {
				t.Error(err)
			}
			for i, want := range map[int]int{7: 0, 8: 0} { // the transaction's own claim has no order yet
				if taken, err := tx.ClaimKeys(claims(batch[i])...); len(taken) != want || errors.Is(err, order.ErrBusy) != (i == 8) {
					t.Errorf("key %d again: got %v, %v", i, taken, err)
				}
			}
			return nil
		})
		s.wantRows(t, rows{Orders: 1, Lines: 1, Movements: 2, Keys: 1})
		batch[100].Key = "another"
		testserver.Must(t, s.place(t.Context(), batch...))
		s.wantRows(t, rows{Orders: n + 1, Lines: n + 1, Movements: n + 2, Keys: n + 1})
		s.wantClean(t)
	})
}

// A database is writable for Writable while orders are written, and no row of it is changed.
func TestWritable_busy(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		s := newShop(t, db, 5, "mug")
		s.undone(t, func(tx order.Tx) error {
			if err := write(tx, draft("ann", "key-1", "mug")); err != nil {
				return err
			}
			for range 2 {
				if err := s.Writable(t.Context()); err != nil {
					t.Errorf("while an order is written: %v", err)
				}
			}
			return nil
		})
		s.wantUntouched(t, 5)
	})
}
