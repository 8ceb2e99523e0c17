package mysqllock_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lock"
)

// "Deadlocks and changed rows (1213, 1020) and rows that another transaction has (3572, 1205) are rolled back and tried
// again, a few times": what was done before is rolled back each time.
func TestBackend_Conflicts(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		db.SetMaxOpenConns(1) // the trigger counts in the session
		b := newBackend(t, db)
		exec(t, db, `CREATE TRIGGER meet BEFORE UPDATE ON locks FOR EACH ROW
			IF @meet > 0 THEN
				SET @meet = @meet - 1, @met = @met + 1;
				IF @errno = 1213 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213;
				ELSEIF @errno = 1205 THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205;
				ELSEIF @errno = 1020 THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1020;
				ELSE SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1644;
				END IF;
			END IF`)
		for _, c := range []struct {
			errno uint16
			meet  int
			met   int64
			ok    bool
		}{
			{1213, 2, 2, true},
			{1205, 2, 2, true},
			{1020, 2, 2, true},
			{1213, 1000, 8, false},
			{1644, 1, 1, false}, // not a conflict
		} {
			t.Run(fmt.Sprintf("%d x %d", c.meet, c.errno), func(t *testing.T) {
				claim := lock.Claim{Key: t.Name(), Owner: "me", TTL: long}
				for name, call := range map[string]func() error{
					"Acquire": func() error { _, err := b.Acquire(bounded(t), claim); return err },
					"Renew":   func() error { _, err := b.Renew(bounded(t), claim); return err },
					"Release": func() error { return b.Release(bounded(t), claim) },
				} {
					mustGrant(t, b, claim)
					exec(t, db, "SET @meet = ?, @met = 0, @errno = ?", c.meet, c.errno)
					err := call()
					exec(t, db, "SET @meet = 0")
					var answer *mysql.MySQLError
					if c.ok && err != nil || !c.ok && (!errors.As(err, &answer) || answer.Number != c.errno) {
						t.Errorf("%s: %v", name, err)
					}
					if met := number(t, db, "SELECT @met"); met != c.met {
						t.Errorf("%s: tried %d times in vain, want %d", name, met, c.met)
					}
				}
			})
		}
	})
}

// "If another transaction has locked the row, the key counts as held: no server thread waits for the row", whatever the
// client of that has become.
func TestBackend_StuckRow(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db)
		mine := lock.Claim{Key: "key", Owner: "me", TTL: long}
		mustGrant(t, b, mine)
		tx, err := db.BeginTx(bounded(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		number(t, tx, "SELECT COUNT(*) FROM locks WHERE name = 'key' FOR UPDATE")
		for range 20 {
			mustBeHeld(t, b, lock.Claim{Key: "key", Owner: "other", TTL: long, Queue: true})
		}
		if _, err := b.Renew(bounded(t), mine); err == nil || errors.Is(err, lock.ErrLost) {
			t.Errorf("Renew: %v, want an error that is no ErrLost", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Renew(bounded(t), mine); err != nil {
			t.Errorf("Renew of the free row: %v", err)
		}
	})
}

// blocked waits until a transaction of this schema waits for a row, and returns its connection.
func blocked(t testing.TB, db *sql.DB) (id int64) {
	t.Helper()
	// The servers renew this table only if nobody has read it for 0.1 s.
	for ctx := bounded(t); ; time.Sleep(110 * time.Millisecond) {
		err := db.QueryRowContext(ctx, `SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX
			 JOIN information_schema.PROCESSLIST ON ID = trx_mysql_thread_id
			WHERE trx_state = 'LOCK WAIT' AND DB = DATABASE()`).Scan(&id)
		if err == nil {
			return id
		}
		if !errors.Is(err, sql.ErrNoRows) {
			t.Fatalf("who waits for a row: %v", err)
		}
	}
}
