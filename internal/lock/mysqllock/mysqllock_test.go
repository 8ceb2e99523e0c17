package mysqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
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
				Expires: true, Fences: true,
				Forget: func(t testing.TB) { exec(t, db, "DELETE FROM locks") },
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
		if n := rows(t, db); n != len(keys) {
			t.Errorf("%d rows, want %d", n, len(keys))
		}
	})
}

// "If another transaction has locked the row, the key counts as held: taking or renewing a lease never waits for the row",
// even if the client of that transaction has disappeared. "A waiter reads the row, by a plain SELECT without locks, after
// 5 ms and then less and less often", and so finds a release.
func TestBackend_LockedRow(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db)
		mine := lock.Claim{Key: "key", Owner: "me", TTL: long}
		other := lock.Claim{Key: "key", Owner: "other", TTL: long, Queue: true}
		mustGrant(t, b, mine)
		tx, err := db.BeginTx(bounded(t), nil)
		testserver.Must(t, err)
		defer func() { _ = tx.Rollback() }()
		_, err = tx.ExecContext(bounded(t), "UPDATE locks SET owner = '' WHERE name = 'key'")
		testserver.Must(t, err)
		held := mustBeHeld(t, b, other)
		if _, err := b.Renew(bounded(t), mine); err == nil || errors.Is(err, lock.ErrLost) {
			t.Errorf("Renew: %v, want an error, and no loss", err)
		}
		ctx, cancel := context.WithTimeout(bounded(t), 200*time.Millisecond)
		defer cancel()
		if err := b.Wait(ctx, other, held); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v, want the end of its context: the key is held", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- b.Wait(bounded(t), other, held) }()
		testserver.Must(t, tx.Commit())
		testserver.Must(t, <-waited)
		mustGrant(t, b, other)
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
		_, err := b.Renew(bounded(t), me)
		if released := b.Release(bounded(t), me); !errors.Is(err, lock.ErrLost) || !errors.Is(released, lock.ErrLost) {
			t.Errorf("Renew and Release at the deadline: %v and %v, want ErrLost", err, released)
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
		testserver.Must(t, err)
		_, statement, _ := strings.Cut(string(doc), "//\tDELETE")
		statement, _, _ = strings.Cut(statement, "//\n")
		old := lock.Claim{Key: "old", Owner: "me", TTL: long}
		fence := mustGrant(t, b, old)
		mustGrant(t, b, lock.Claim{Key: "held", Owner: "me", TTL: long})
		exec(t, db, "UPDATE locks SET deadline = deadline - INTERVAL 2 DAY, fence = fence - 100000000000 WHERE name = 'old'")
		exec(t, db, "DELETE "+strings.ReplaceAll(statement, "//", ""))
		if n := rows(t, db); n != 1 {
			t.Errorf("%d rows, want the held one", n)
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
			useKey(t, b, "key") // inserts the row
			statements.Store(0)
			useKey(t, b, "key")
			if n := statements.Load(); n != 3+2 {
				t.Errorf("clientFoundRows=%s: %d statements, want one each of Acquire, Renew and Release, and two for a held key", found, n)
			}
		}
	})
}

// "The user needs SELECT, INSERT and UPDATE on the table, and CREATE for CreateTable." "Nothing changes in the sessions of
// the caller's pool, except the value of LAST_INSERT_ID()."
func TestBackend_RightsAndSession(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		root := open(t, dsn)
		config, err := mysql.ParseDSN(dsn)
		testserver.Must(t, err)
		config.User = fmt.Sprintf("u%x", rand.Uint64())
		exec(t, root, "CREATE USER "+config.User+" IDENTIFIED BY '"+config.Passwd+"'")
		defer exec(t, root, "DROP USER "+config.User)
		exec(t, root, "GRANT SELECT, INSERT, UPDATE, CREATE ON locks TO "+config.User)
		db := open(t, config.FormatDSN())
		db.SetMaxOpenConns(1)
		b := newBackend(t, db)
		exec(t, root, "REVOKE CREATE ON locks FROM "+config.User)
		useKey(t, b, "key")
		var name, set string // the number of SETs on the only connection
		testserver.Must(t, db.QueryRowContext(bounded(t), "SHOW SESSION STATUS LIKE 'Com_set_option'").Scan(&name, &set))
		if set != "0" {
			t.Errorf("%s statements changed the session", set)
		}
	})
}

// "After a deadlock or a changed row (1213, 1020), or if another transaction has locked the row (3572, 1205), the
// statement is repeated, a few times".
func TestBackend_Conflicts(t *testing.T) {
	connector, err := mysql.MySQLDriver{}.OpenConnector(with(t, testserver.MySQL(t), "interpolateParams", "true"))
	testserver.Must(t, err)
	server := &conflicting{Connector: connector}
	db := sql.OpenDB(server)
	defer func() { _ = db.Close() }()
	b := newBackend(t, db)
	c := lock.Claim{Key: "key", Owner: "me", TTL: long}
	for _, test := range []struct {
		errno     uint16
		meet, met int
		ok        bool
	}{{1213, 2, 2, true}, {1205, 2, 2, true}, {3572, 2, 2, true}, {1020, 2, 2, true}, {1213, 1000, 8, false}, {1644, 1, 1, false}} {
		for name, call := range map[string]func() error{
			"Acquire": func() error { _, err := b.Acquire(bounded(t), c); return err },
			"Renew":   func() error { _, err := b.Renew(bounded(t), c); return err },
			"Release": func() error { return b.Release(bounded(t), c) },
		} {
			mustGrant(t, b, c)
			server.errno, server.meet, server.met = test.errno, test.meet, 0
			err := call()
			server.meet = 0
			var answer *mysql.MySQLError
			known := errors.As(err, &answer) && answer.Number == test.errno
			if test.ok && err != nil || !test.ok && !known || server.met != test.met {
				t.Errorf("%s, %d times %d: %v after %d attempts, want %d", name, test.meet, test.errno, err, server.met, test.met)
			}
		}
	}
}

// conflicting answers statements with an error while meet is positive.
type conflicting struct {
	driver.Connector
	errno     uint16
	meet, met int
}

func (c *conflicting) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return &conflictingConn{conn, c}, err
}

type conflictingConn struct {
	driver.Conn
	server *conflicting
}

func (c *conflictingConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	if s := c.server; s.meet > 0 {
		s.meet, s.met = s.meet-1, s.met+1
		return nil, &mysql.MySQLError{Number: s.errno}
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, statement, args)
}

// "Acquire, Renew and Release get a context with a deadline. They return by then, even if the store is silent or the driver
// knows no contexts." "If the answer to a request is lost, a repeated request or a release settles it."
func TestBackend_AnswerLost(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		pass := func(string) testserver.Fate { return testserver.Pass }
		through, link := testserver.Judged(t, with(t, dsn, "interpolateParams", "true"), pass)
		b := newBackend(t, open(t, through))
		mine := lock.Claim{Key: "key", Owner: "me", TTL: long}
		before := mustGrant(t, b, mine)
		for i, call := range []func(ctx context.Context) error{
			func(ctx context.Context) error { return b.Release(ctx, mine) },
			func(ctx context.Context) error { _, err := b.Acquire(ctx, mine); return err },
			func(ctx context.Context) error { _, err := b.Renew(ctx, mine); return err },
		} {
			_, err := b.Holder(bounded(t), "key") // over the next connection
			testserver.Must(t, err)
			link.Silence(false, true)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("call %d without an answer: %v, want DeadlineExceeded", i, err)
			}
			cancel()
			link.Cut(false)
			link.Heal()
		}
		if fence := mustGrant(t, b, mine); fence <= before {
			t.Errorf("fence %d after %d", fence, before)
		}
		testserver.Must(t, b.Release(bounded(t), mine))
		mustGrant(t, b, lock.Claim{Key: "key", Owner: "next", TTL: long})
	})
}
