package store_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// addOne runs a transaction that adds one to the only row of table counts.
func addOne(ctx context.Context, db *gorm.DB) error {
	return store.InTx(ctx, db, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE counts SET n = n + 1").Error
	})
}

func withCounts(t *testing.T, db *gorm.DB) {
	t.Helper()
	mustExec(t, db, "CREATE TABLE counts (n INT NOT NULL)", "INSERT INTO counts VALUES (0)")
}

func wantCount(t *testing.T, db *gorm.DB, want int) {
	t.Helper()
	var got int
	// A lock on the row waits for a transaction that is about to be rolled back.
	query := "SELECT n FROM counts"
	if db.Name() == "mysql" {
		query += " FOR UPDATE"
	}
	if err := db.Raw(query).Row().Scan(&got); err != nil || got != want {
		t.Errorf("count: got %d (%v), want %d", got, err, want)
	}
}

func TestInTx(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		withCounts(t, db)
		for range 3 {
			if err := addOne(t.Context(), db); err != nil {
				t.Error(err)
			}
		}
		wantCount(t, db, 3)
	})
}

// "A COMMIT whose answer is lost is ErrOutcomeUnknown": it may have been done,
// or not.
func TestInTx_answerToCommitIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		forward bool
		count   int
	}{"committed": {true, 1}, "rolled back": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachServer(t, func(t *testing.T, dsn string) {
				direct := open(t, dsn)
				withCounts(t, direct)
				db := open(t, through(t, dsn, &proxy{word: []byte("COMMIT"), forward: c.forward}))
				err := addOne(t.Context(), db)
				if !errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, store.ErrBusy) {
					t.Errorf("got %v, want ErrOutcomeUnknown", err)
				}
				wantCount(t, direct, c.count)
			})
		})
	}
}

// "A LockWait or Lost is ErrBusy, after a rollback: nothing was changed."
func TestInTx_connectionIsLostBeforeCommit(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		direct := open(t, dsn)
		withCounts(t, direct)
		db := open(t, through(t, dsn, &proxy{word: []byte("UPDATE"), forward: true}))
		err := addOne(t.Context(), db)
		if !errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("got %v, want ErrBusy", err)
		}
		wantCount(t, direct, 0)
	})
}

// "The COMMIT itself heeds no ctx: cutting it off would only make its outcome
// unknown."
func TestInTx_commitHeedsNoContext(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		direct := open(t, dsn)
		withCounts(t, direct)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		db := open(t, through(t, dsn, &proxy{word: []byte("COMMIT"), spotted: cancel}))
		if err := addOne(ctx, db); err != nil {
			t.Errorf("got %v, want the commit to go through", err)
		}
		if ctx.Err() == nil {
			t.Error("the context was not cancelled: the proxy saw no COMMIT")
		}
		wantCount(t, direct, 1)
	})
}

// "BEGIN and statements heed ctx": a BEGIN whose answer does not come is cut off.
func TestInTx_beginHeedsContext(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		ctx, cancel := context.WithCancel(t.Context())
		silence := make(chan struct{})
		defer close(silence)
		db := open(t, through(t, dsn, &proxy{word: []byte("START TRANSACTION"), spotted: func() {
			cancel()
			<-silence
		}}))
		err := store.InTx(ctx, db, func(*gorm.DB) error {
			t.Error("the transaction has begun")
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

// "BEGIN and statements heed ctx": one that waits for a lock is cut off.
func TestInTx_statementHeedsContext(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		withCounts(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// The second transaction waits for the row that the first has, and is
		// cancelled at the moment its UPDATE passes by.
		impatient := open(t, through(t, dsn, &proxy{word: []byte("UPDATE"), spotted: cancel}))
		err := store.InTx(t.Context(), db, func(tx *gorm.DB) error {
			if err := tx.Exec("UPDATE counts SET n = n + 1").Error; err != nil {
				return err
			}
			if err := addOne(ctx, impatient); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		wantCount(t, db, 1)
	})
}
