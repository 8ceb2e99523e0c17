package store_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
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
		how   storetest.Fate
		count int
	}{"committed": {storetest.Mute, 1}, "rolled back": {storetest.Drop, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachServer(t, func(t *testing.T, dsn string) {
				direct := open(t, dsn)
				withCounts(t, direct)
				db := open(t, at("COMMIT", c.how, nil).Through(t, dsn))
				err := addOne(t.Context(), db)
				if !errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, store.ErrBusy) {
					t.Errorf("got %v, want ErrOutcomeUnknown", err)
				}
				wantCount(t, direct, c.count)
			})
		})
	}
}

// "A transaction whose client vanished without a word is rolled back by the
// server": here, after five seconds.
func TestInTx_clientVanishes(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		direct := open(t, dsn+"&innodb_lock_wait_timeout=2")
		withCounts(t, direct)
		db := open(t, at("COMMIT", storetest.Hang, nil).Through(t, dsn+"&wait_timeout=5"))
		if err := addOne(t.Context(), db); !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("got %v, want ErrOutcomeUnknown", err)
		}
		awaitRollback(t, direct)
		wantCount(t, direct, 0)
	})
}

// awaitRollback returns when no transaction has a lock on the row of table counts
// any more. One that has makes each try wait for two seconds.
func awaitRollback(t *testing.T, db *gorm.DB) {
	t.Helper()
	try := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return db.WithContext(ctx).Exec("SELECT n FROM counts FOR UPDATE").Error
	}
	began := time.Now()
	err := try()
	for ; err != nil && time.Since(began) < time.Minute; err = try() {
		if store.Classify(err) != store.LockWait {
			t.Logf("after %v: %v", time.Since(began), err)
		}
	}
	if err != nil {
		t.Fatalf("the transaction is still open after %v: %v", time.Since(began), err)
	}
}

// "A LockWait or Lost is ErrBusy, after a rollback: nothing was changed."
func TestInTx_connectionIsLostBeforeCommit(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		direct := open(t, dsn)
		withCounts(t, direct)
		db := open(t, at("UPDATE", storetest.Mute, nil).Through(t, dsn))
		err := addOne(t.Context(), db)
		if !errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("got %v, want ErrBusy", err)
		}
		wantCount(t, direct, 0)
	})
}

// "A Conflict runs the whole fn again": MariaDB's 1020, for a row that has changed
// since the transaction first read.
func TestInTx_rowChangedSinceSnapshot(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		const setting = "innodb_snapshot_isolation"
		direct := open(t, dsn)
		var name, value string
		err := direct.Raw("SHOW VARIABLES LIKE '"+setting+"'").Row().Scan(&name, &value)
		if errors.Is(err, sql.ErrNoRows) {
			t.Skipf("%s has no %s: it updates the newest row, whatever was read", t.Name(), setting)
		}
		if err != nil {
			t.Fatal(err)
		}
		withCounts(t, direct)
		var answers []uint16
		err = store.InTx(t.Context(), open(t, dsn+"&"+setting+"=ON"), func(tx *gorm.DB) error {
			var n int
			if err := tx.Raw("SELECT n FROM counts").Row().Scan(&n); err != nil {
				return err
			}
			if len(answers) == 0 {
				if err := addOne(t.Context(), direct); err != nil {
					return err
				}
			}
			err := tx.Exec("UPDATE counts SET n = n + 1").Error
			var answer *mysql.MySQLError
			if errors.As(err, &answer) {
				answers = append(answers, answer.Number)
			}
			return err
		})
		if err != nil || !slices.Equal(answers, []uint16{1020}) {
			t.Errorf("got answers %v and %v, want 1020 once, then no error", answers, err)
		}
		wantCount(t, direct, 2)
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
		db := open(t, at("COMMIT", storetest.Pass, cancel).Through(t, dsn))
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
		db := open(t, at("START TRANSACTION", storetest.Pass, func() {
			cancel()
			<-silence
		}).Through(t, dsn))
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
		impatient := open(t, at("UPDATE", storetest.Pass, cancel).Through(t, dsn))
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
