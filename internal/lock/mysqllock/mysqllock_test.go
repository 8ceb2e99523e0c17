package mysqllock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/testserver"
)

// The suite, with either protocol of the driver.
func TestMySQLLock(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		if strings.HasSuffix(t.Name(), "MariaDB") {
			dsn = with(t, dsn, "interpolateParams", "true")
		}
		db := open(t, dsn)
		newBackend(t, db)
		locktest.Run(t, func(*testing.T) locktest.Harness {
			return locktest.Harness{
				Connect: func(t testing.TB) lock.Backend { return mysqllock.New(open(t, dsn)) },
				Expires: true,
				Fences:  true,
				Forget:  func(t testing.TB) { exec(t, db, "DELETE FROM locks") },
			}
		})
	})
}

// "Owners and keys are compared byte by byte and whole."
func TestBackend_KeysAreBytes(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db)
		keys := []string{
			"abc", "ABC", "abc ", " abc", "abc\x00", "äbc", "a\u0308bc", "abc%", "ab_", `a\bc`, "'", "\xff\xfe", "🔒",
			strings.Repeat("k", lock.MaxKey), strings.Repeat("k", lock.MaxKey-1),
		}
		for _, key := range keys {
			mustGrant(t, b, lock.Claim{Key: key, Owner: "me", TTL: long})
		}
		if got, want := number(t, db, "SELECT COUNT(*) FROM locks"), int64(len(keys)); got != want {
			t.Errorf("%d rows, want %d", got, want)
		}
		for _, key := range keys {
			mustBeHeld(t, b, lock.Claim{Key: key, Owner: "ME", TTL: long})
			if err := b.Release(bounded(t), lock.Claim{Key: key, Owner: "me", TTL: long}); err != nil {
				t.Errorf("Release(%.20q): %v", key, err)
			}
		}
	})
}

// A waiter looks at the row "less and less often", locks nothing, and hears of a release by looking.
func TestBackend_WaitLocksNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db)
		holder := lock.Claim{Key: "key", Owner: "holder", TTL: long}
		waiter := lock.Claim{Key: "key", Owner: "waiter", TTL: long, Queue: true}
		mustGrant(t, b, holder)
		tx, err := db.BeginTx(bounded(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		exec(t, tx, "UPDATE locks SET owner = '' WHERE name = 'key'") // also held by a lock of the database
		ctx, cancel := context.WithTimeout(bounded(t), 200*time.Millisecond)
		defer cancel()
		if err := b.Wait(ctx, waiter, lock.Grant{Held: true, Retry: long}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v, want the end of its context: the key is held, and nothing to wait in line for", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- b.Wait(bounded(t), waiter, lock.Grant{Held: true, Retry: long}) }()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("Wait: %v", err)
		}
		mustGrant(t, b, waiter)
	})
}

// "Nothing changes in the sessions of the caller's pool, except the value of LAST_INSERT_ID()."
func TestBackend_SessionsStayAsTheyWere(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		db.SetMaxOpenConns(1)
		session := func() (s string) {
			isolation := "transaction_isolation"
			if err := db.QueryRowContext(bounded(t), "SELECT @@"+isolation).Scan(&s); err != nil {
				isolation = "tx_isolation"
			}
			err := db.QueryRowContext(bounded(t), "SELECT CONCAT_WS(' ', @@"+isolation+
				", @@autocommit, @@sql_mode, @@time_zone, @@innodb_lock_wait_timeout)").Scan(&s)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		before := session()
		b := newBackend(t, db)
		c := lock.Claim{Key: "key", Owner: "me", TTL: long}
		mustGrant(t, b, c)
		mustBeHeld(t, b, lock.Claim{Key: "key", Owner: "other", TTL: long})
		if _, err := b.Renew(bounded(t), c); err != nil {
			t.Fatal(err)
		}
		if err := b.Release(bounded(t), c); err != nil {
			t.Fatal(err)
		}
		if after := session(); after != before {
			t.Errorf("session %q, want %q", after, before)
		}
	})
}

// "The clock of the database (UTC_TIMESTAMP) judges the deadline." The test sets the session's clock: a lease of an
// hour runs out an hour later, to the microsecond, at once.
func TestBackend_DatabaseClock(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		// A time zone with a summer time, and the middle of the hour that its clocks show twice.
		db := open(t, with(t, dsn, "time_zone", "'-05:00'"))
		db.SetMaxOpenConns(1) // one session, one clock
		b := newBackend(t, db)
		at := func(clock string) { exec(t, db, "SET TIMESTAMP = "+clock) }
		defer at("DEFAULT")
		me := lock.Claim{Key: "key", Owner: "me", TTL: time.Hour}
		other := lock.Claim{Key: "key", Owner: "other", TTL: time.Hour}

		at("1700000000.25")
		if fence := mustGrant(t, b, me); fence != 1_700_000_000_250_000 {
			t.Errorf("fence %d, want the clock in microseconds", fence)
		}
		at("1700003600.249999")
		if g := mustBeHeld(t, b, other); g.Retry != time.Microsecond {
			t.Errorf("the holder has %v left, want 1µs", g.Retry)
		}
		for range 2 { // the second changes nothing in the row
			if _, err := b.Renew(bounded(t), me); err != nil {
				t.Errorf("Renew in the last moment: %v", err)
			}
		}
		at("1700007200.249999")
		if _, err := b.Renew(bounded(t), me); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Renew at the deadline: %v, want ErrLost", err)
		}
		if err := b.Release(bounded(t), me); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release at the deadline: %v, want ErrLost", err)
		}
		mustGrant(t, b, other)
		mustBeHeld(t, b, me)
	})
}

// The statement of the package comment deletes the rows of keys that have been free for a day, and what is minted after
// it is still higher.
func TestBackend_RowsDeleted(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db)
		doc, err := os.ReadFile("doc.go")
		if err != nil {
			t.Fatal(err)
		}
		_, statement, _ := strings.Cut(string(doc), "//\tDELETE")
		statement, _, _ = strings.Cut(statement, "//\n")
		old := lock.Claim{Key: "old", Owner: "me", TTL: long}
		held := lock.Claim{Key: "held", Owner: "me", TTL: long}
		fence := mustGrant(t, b, old)
		mustGrant(t, b, held)
		exec(t, db, "UPDATE locks SET deadline = deadline - INTERVAL 2 DAY, fence = fence - 100000000000 WHERE name = 'old'")
		exec(t, db, "DELETE "+strings.ReplaceAll(statement, "//", ""))
		if rows := number(t, db, "SELECT COUNT(*) FROM locks"); rows != 1 {
			t.Errorf("%d rows, want the held one", rows)
		}
		if next := mustGrant(t, b, old); next <= fence {
			t.Errorf("fence %d after %d, whose row was removed", next, fence)
		}
	})
}

// "A successful request is one statement", whichever rows the driver counts as affected.
func TestBackend_OneStatement(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		newBackend(t, open(t, dsn))
		for _, found := range []string{"false", "true"} {
			var statements atomic.Int32
			through, _ := testserver.Judged(t, with(t, dsn, "interpolateParams", "true"), func(statement string) testserver.Fate {
				if statement != "CONNECT" {
					statements.Add(1)
				}
				return testserver.Pass
			})
			b := mysqllock.New(open(t, with(t, through, "clientFoundRows", found)))
			c := lock.Claim{Key: "key", Owner: "me", TTL: long}
			mustGrant(t, b, c) // inserts the row
			statements.Store(0)
			mustGrant(t, b, c)
			if _, err := b.Renew(bounded(t), c); err != nil {
				t.Error(err)
			}
			if err := b.Release(bounded(t), c); err != nil {
				t.Error(err)
			}
			if n := statements.Load(); n != 3 {
				t.Errorf("clientFoundRows=%s: %d statements of Acquire, Renew and Release, want 3", found, n)
			}
		}
	})
}

// "The user needs SELECT, INSERT and UPDATE on the table, and CREATE for CreateTable."
func TestBackend_Rights(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		root := open(t, dsn)
		config, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.User = fmt.Sprintf("u%x", rand.Uint64())
		exec(t, root, "CREATE USER "+config.User+" IDENTIFIED BY '"+config.Passwd+"'")
		defer exec(t, root, "DROP USER "+config.User)
		exec(t, root, "GRANT SELECT, INSERT, UPDATE, CREATE ON locks TO "+config.User)
		b := newBackend(t, open(t, config.FormatDSN()))
		exec(t, root, "REVOKE CREATE ON locks FROM "+config.User)
		c := lock.Claim{Key: "key", Owner: "me", TTL: long}
		mustGrant(t, b, c)
		mustBeHeld(t, b, lock.Claim{Key: "key", Owner: "other", TTL: long})
		if _, err := b.Renew(bounded(t), c); err != nil {
			t.Error(err)
		}
		if h, err := b.Holder(bounded(t), "key"); err != nil || h.Owner != "me" {
			t.Errorf("Holder: %+v, %v", h, err)
		}
		if err := b.Release(bounded(t), c); err != nil {
			t.Error(err)
		}
	})
}
