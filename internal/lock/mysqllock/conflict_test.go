package mysqllock_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
)

// "Deadlocks [...] are rolled back and tried again". A trigger makes the grant
// lock a second row, which another transaction has; that one then asks for the
// lock's row, and is the heavier of the two: the grant is the victim.
func TestBackend_DeadlockIsRetried(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db, spy := spied(t, dsn)
		b := newBackend(t, db, mysqllock.Options{})
		other := blockGrants(t, db)
		granted := make(chan lock.Grant, 1)
		c := lock.Claim{Key: "key", Owner: "me", TTL: long}
		go func() {
			g, err := b.Acquire(bounded(t), c)
			if err != nil {
				t.Errorf("Acquire: %v", err)
			}
			granted <- g
		}()
		blocked(t, open(t, dsn))
		number(t, other, "SELECT COUNT(*) FROM locks WHERE name = 'key' FOR UPDATE") // goes on when the victim is gone
		if err := other.Rollback(); err != nil {
			t.Fatal(err)
		}
		if g := <-granted; g.Held || g.Fence == 0 {
			t.Errorf("%+v, want a grant", g)
		}
		takes := 0
		for _, c := range spy.all() {
			if strings.HasPrefix(c.statement, "UPDATE `locks`") {
				takes++
			}
		}
		if takes != 2 {
			t.Errorf("%d attempts, want 2", takes)
		}
		if holds := number(t, db, "SELECT holds FROM locks WHERE name = 'key'"); holds != 1 {
			t.Errorf("granted %d times, want once", holds)
		}
	})
}

// The errors that are tried again, by number, "a few times"; what was done before
// is rolled back each time.
func TestBackend_Conflicts(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		db.SetMaxOpenConns(1) // the trigger counts in the session
		b := newBackend(t, db, mysqllock.Options{})
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

// A connection that is killed in mid-transaction leaves nothing: the key is free,
// and as it was.
func TestBackend_KilledConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db, admin := open(t, dsn), open(t, dsn)
		b := newBackend(t, db, mysqllock.Options{})
		other := blockGrants(t, admin)
		failed := make(chan error, 1)
		go func() {
			_, err := b.Acquire(bounded(t), lock.Claim{Key: "key", Owner: "killed", TTL: long})
			failed <- err
		}()
		exec(t, admin, fmt.Sprintf("KILL %d", blocked(t, admin)))
		if err := <-failed; err == nil {
			t.Error("Acquire: granted over a connection that was killed")
		}
		if err := other.Rollback(); err != nil {
			t.Fatal(err)
		}
		if holds := number(t, db, "SELECT holds FROM locks WHERE name = 'key' AND owner = ''"); holds != 0 {
			t.Errorf("granted %d times, want never", holds)
		}
		mustGrant(t, b, lock.Claim{Key: "key", Owner: "next", TTL: long})
	})
}

// blockGrants makes each grant wait for a row that the returned transaction has.
func blockGrants(t testing.TB, db *sql.DB) *sql.Tx {
	t.Helper()
	exec(t, db, "CREATE TABLE other (id INT PRIMARY KEY, n INT NOT NULL)")
	for id := range 20 {
		exec(t, db, "INSERT INTO other VALUES (?, 0)", id)
	}
	exec(t, db, `CREATE TRIGGER block BEFORE UPDATE ON locks FOR EACH ROW UPDATE other SET n = n + 1 WHERE id = 0`)
	tx, err := db.BeginTx(bounded(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	exec(t, tx, "UPDATE other SET n = n + 1")
	return tx
}

// blocked waits until a transaction of this schema waits for a row, and returns
// its connection.
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
