package mysqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lock"
)

// "After a deadlock or a changed row (1213, 1020), or if another transaction has locked the row (3572, 1205), the
// statement is repeated, a few times".
func TestBackend_Conflicts(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		config, err := mysql.ParseDSN(with(t, dsn, "interpolateParams", "true"))
		if err != nil {
			t.Fatal(err)
		}
		connector, err := mysql.NewConnector(config)
		if err != nil {
			t.Fatal(err)
		}
		server := &conflicting{Connector: connector}
		db := sql.OpenDB(server)
		t.Cleanup(func() { _ = db.Close() })
		b := newBackend(t, db)
		for _, c := range []struct {
			errno uint16
			meet  int
			met   int
			ok    bool
		}{
			{1213, 2, 2, true},
			{1205, 2, 2, true},
			{3572, 2, 2, true},
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
					server.errno, server.meet, server.met = c.errno, c.meet, 0
					err := call()
					server.meet = 0
					var answer *mysql.MySQLError
					if c.ok && err != nil || !c.ok && (!errors.As(err, &answer) || answer.Number != c.errno) {
						t.Errorf("%s: %v", name, err)
					}
					if server.met != c.met {
						t.Errorf("%s: tried %d times in vain, want %d", name, server.met, c.met)
					}
				}
			})
		}
	})
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

// "If another transaction has locked the row, the key counts as held: taking or renewing a lease never waits for the row",
// even if the client of that transaction has disappeared.
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
		for range 3 {
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
