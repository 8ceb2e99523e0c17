package orderstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "A buyer's idempotency key makes at most one order": fifty at once with one
// key. ErrKeyTaken: somebody committed it before.
func TestTx_ClaimKey_twins(t *testing.T) {
	t.Parallel()
	const twins = 50
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 1000, "mug")
		var placed, taken atomic.Int64
		var crowd sync.WaitGroup
		for range twins {
			crowd.Go(func() {
				switch err := s.place(t.Context(), draft("ann", "k1", "mug")); {
				case err == nil:
					placed.Add(1)
				case errors.Is(err, order.ErrKeyTaken):
					taken.Add(1)
				default:
					t.Errorf("twin: %v", err)
				}
			})
		}
		crowd.Wait()
		if placed.Load() != 1 || taken.Load() != twins-1 {
			t.Errorf("got %d placed and %d refused, want 1 and %d", placed.Load(), taken.Load(), twins-1)
		}
		s.wantRows(t, rows{Orders: 1, Lines: 1, Movements: 2, Keys: 1})
		if _, found := s.audit(t, ""); len(found) > 0 {
			t.Errorf("audit: got %v, want no difference", found)
		}
	})
}

// "Errors of fn come back as they are, after a rollback."
func TestStore_InTx_rollsBackOnError(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		mine := errors.New("mine")
		err := s.orders.InTx(t.Context(), func(tx order.Tx) error {
			if err := write(tx, draft("ann", "k1", "mug")); err != nil {
				return err
			}
			return mine
		})
		if err != mine { //nolint:errorlint // as it is
			t.Errorf("got %v, want the error itself", err)
		}
		s.wantUntouched(t, 10)
	})
}

// "A refused order changes no row", also where only its last line is refused.
func TestStore_InTx_allLinesOrNone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "hat", "mug")
		for _, last := range []struct {
			sku  string
			want error
		}{{"cap", stock.ErrUnknownSKU}, {"sold-out", stock.ErrSoldOut}} {
			if last.want == stock.ErrSoldOut { //nolint:errorlint // a table's own value
				newShop(t, db, 0, last.sku)
			}
			err := s.place(t.Context(), draft("ann", "k1", "hat", "mug", last.sku))
			if !errors.Is(err, last.want) {
				t.Errorf("last line of %s: got %v, want %v", last.sku, err, last.want)
			}
		}
		s.wantRows(t, rows{Movements: 3})
		if _, found := s.audit(t, ""); len(found) > 0 {
			t.Errorf("audit: got %v, want no difference", found)
		}
	})
}

// "An error of fn rolls back and comes back as it is. So does a panic."
func TestStore_InTx_rollsBackOnPanic(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("recovered %v, want boom", got)
				}
			}()
			_ = s.orders.InTx(t.Context(), func(tx order.Tx) error {
				if err := write(tx, draft("ann", "k1", "mug")); err != nil {
					return err
				}
				panic("boom")
			})
		}()
		s.wantUntouched(t, 10)
		s.mustPlace(t, draft("ann", "k1", "mug")) // its locks and its connection are free
	})
}

// "Statements heed ctx, and a ctx that ends before the COMMIT rolls back. The
// error then holds ctx.Err() and its cause."
func TestStore_InTx_cancelled(t *testing.T) {
	t.Parallel()
	lost := errors.New("lease lost")
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		for name, fn := range map[string]func(tx order.Tx, cancel func()) error{
			"before the first statement": func(tx order.Tx, cancel func()) error {
				cancel()
				return write(tx, draft("ann", "k1", "mug"))
			},
			"between two statements": func(tx order.Tx, cancel func()) error {
				o := draft("ann", "k1", "mug")
				if err := tx.ClaimKeys(order.Claim{Order: o, Fingerprint: "f"}); err != nil {
					return err
				}
				cancel()
				return tx.Add(o)
			},
			"after the last statement": func(tx order.Tx, cancel func()) error {
				err := write(tx, draft("ann", "k1", "mug"))
				cancel()
				return err
			},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			err := s.orders.InTx(ctx, func(tx order.Tx) error { return fn(tx, func() { cancel(lost) }) })
			if !errors.Is(err, context.Canceled) || !errors.Is(err, lost) {
				t.Errorf("cancelled %s: got %v, want context.Canceled and its cause", name, err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(lost)
		if err := s.place(ctx, draft("ann", "k1", "mug")); !errors.Is(err, context.Canceled) || !errors.Is(err, lost) {
			t.Errorf("cancelled before it began: got %v, want context.Canceled and its cause", err)
		}
		s.wantUntouched(t, 10)
		s.mustPlace(t, draft("ann", "k1", "mug"))
	})
}

// "A transaction in which a statement failed is never committed, even if the
// function that ran it returns nil."
func TestStore_InTx_neverCommitsAfterAFailure(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		o := draft("ann", "k1", "mug")
		err := s.orders.InTx(t.Context(), func(tx order.Tx) error {
			if err := tx.ClaimKeys(order.Claim{Order: o, Fingerprint: "f"}); err != nil {
				return err
			}
			broken := o
			broken.Total.Minor = -1
			first := tx.Add(broken) // a CHECK refuses it
			if first == nil {
				t.Error("a negative total was added")
			}
			if again := tx.Take(stock.Conditional, stock.Take{SKU: "mug", Units: 1}); again != first { //nolint:errorlint // the same one
				t.Errorf("statement after a failure: got %v, want %v", again, first)
			}
			return nil
		})
		if err == nil {
			t.Error("committed after a failed statement")
		}
		s.wantUntouched(t, 10)
	})
}

// "A refusal, such as stock.ErrSoldOut, is no failure; a transaction may go on
// after it."
func TestStore_InTx_goesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		s.mustPlace(t, draft("ann", "k1", "mug"))
		err := s.orders.InTx(t.Context(), func(tx order.Tx) error {
			if err := tx.Take(stock.Conditional, stock.Take{SKU: "mug", Units: 11}); !errors.Is(err, stock.ErrSoldOut) {
				t.Errorf("too many: got %v, want ErrSoldOut", err)
			}
			if err := tx.ClaimKeys(order.Claim{Order: draft("ann", "k1"), Fingerprint: "f"}); !errors.Is(err, order.ErrKeyTaken) {
				t.Errorf("same key: got %v, want ErrKeyTaken", err)
			}
			return write(tx, draft("ann", "k2", "mug"))
		})
		if err != nil {
			t.Errorf("place after a refusal: %v", err)
		}
		s.wantRows(t, rows{Orders: 2, Lines: 2, Movements: 3, Keys: 2})
	})
}
