package mysqllock_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// patience bounds what hangs; long is a TTL that no test waits for.
const (
	patience = 30 * time.Second
	long     = 10 * patience
)

// onBoth runs a test on an empty schema of each server.
func onBoth(t *testing.T, test func(t *testing.T, dsn string)) {
	for name, server := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) { test(t, server(t)) })
	}
}

// open returns a pool that is closed at the end of the test.
func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	testserver.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// with returns the DSN with one more parameter.
func with(t testing.TB, dsn, name, value string) string {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	testserver.Must(t, err)
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params[name] = value
	return config.FormatDSN()
}

// newBackend returns a Backend whose table exists.
func newBackend(t testing.TB, db *sql.DB) *mysqllock.Backend {
	t.Helper()
	b := mysqllock.New(db)
	testserver.Must(t, b.CreateTable(bounded(t)))
	return b
}

// bounded returns a context that ends with the tests' patience.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// exec runs a statement that sets a scene.
func exec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(bounded(t), statement)
	testserver.Must(t, err)
}

// rows returns the number of keys that have a row.
func rows(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	testserver.Must(t, db.QueryRowContext(bounded(t), "SELECT COUNT(*) FROM locks").Scan(&n))
	return n
}

// mustGrant fails the test unless the claim is granted.
func mustGrant(t testing.TB, b lock.Backend, c lock.Claim) (fence int64) {
	t.Helper()
	g, err := b.Acquire(bounded(t), c)
	if err != nil || g.Held {
		t.Fatalf("Acquire by %q: %+v, %v; want a grant", c.Owner, g, err)
	}
	return g.Fence
}

// mustBeHeld fails the test unless another owner holds the key.
func mustBeHeld(t testing.TB, b lock.Backend, c lock.Claim) lock.Grant {
	t.Helper()
	g, err := b.Acquire(bounded(t), c)
	if err != nil || !g.Held {
		t.Fatalf("Acquire by %q: %+v, %v; want held by another", c.Owner, g, err)
	}
	return g
}

// useKey takes, renews and releases a key, which another asks for meanwhile.
func useKey(t testing.TB, b lock.Backend, key string) {
	t.Helper()
	c := lock.Claim{Key: key, Owner: "me", TTL: long}
	mustGrant(t, b, c)
	mustBeHeld(t, b, lock.Claim{Key: key, Owner: "other", TTL: long})
	_, err := b.Renew(bounded(t), c)
	testserver.Must(t, err)
	testserver.Must(t, b.Release(bounded(t), c))
}
