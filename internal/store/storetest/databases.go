package storetest

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/store"
)

// Kind is one kind of database.
type Kind struct {
	Name   string
	Server bool // a server with row locks, not a file with one writer
	make   func(t testing.TB, params string) Database
}

// Kinds is the table of all kinds.
func Kinds() []Kind {
	return []Kind{
		{Name: "SQLite", make: file},
		{Name: "MySQL", Server: true, make: server(testserver.MySQL)},
		{Name: "MariaDB", Server: true, make: server(testserver.MariaDB)},
	}
}

// Each runs test on a migrated database of each kind, in parallel.
func Each(t *testing.T, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	EachKind(t, func(t *testing.T, kind Kind) { test(t, kind.New(t, "").Migrated(t)) })
}

// EachKind runs test for each kind of database, in parallel.
func EachKind(t *testing.T, test func(t *testing.T, kind Kind)) {
	t.Helper()
	each(t, Kinds(), test)
}

// EachServer is EachKind without SQLite, for what is about row locks, the network
// or a server's clock.
func EachServer(t *testing.T, test func(t *testing.T, kind Kind)) {
	t.Helper()
	each(t, slices.DeleteFunc(Kinds(), func(k Kind) bool { return !k.Server }), test)
}

func each(t *testing.T, kinds []Kind, test func(t *testing.T, kind Kind)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// Database is an empty database of the test's own.
type Database struct {
	dsn  string // of a server
	open func(context.Context) (*gorm.DB, error)
}

// New makes a database that goes with the test. The params are added to a
// server's DSN, such as "innodb_lock_wait_timeout=1".
func (k Kind) New(t testing.TB, params string) Database {
	t.Helper()
	return k.make(t, params)
}

// Open opens the database until the test ends. Two calls give two pools, as two
// processes have.
func (d Database) Open(t testing.TB) *gorm.DB {
	t.Helper()
	db, err := d.open(t.Context())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := store.Close(db); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// Through returns the same database, on a server, as it is reached through p.
func (d Database) Through(t testing.TB, p *Proxy) Database {
	t.Helper()
	if d.dsn == "" {
		t.Fatal("there is no network before a file")
	}
	return atServer(p.Through(t, d.dsn))
}

// Migrated opens the database with the shop's schema in it.
func (d Database) Migrated(t testing.TB) *gorm.DB {
	t.Helper()
	db := d.Open(t)
	if _, err := store.Migrate(t.Context(), db); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return db
}

func file(t testing.TB, _ string) Database {
	path := filepath.Join(t.TempDir(), "shop.db")
	return Database{open: func(ctx context.Context) (*gorm.DB, error) { return store.SQLite(ctx, path) }}
}

func server(schema func(testing.TB) string) func(testing.TB, string) Database {
	return func(t testing.TB, params string) Database { return atServer(withParams(schema(t), params)) }
}

func atServer(dsn string) Database {
	return Database{
		dsn:  dsn,
		open: func(ctx context.Context) (*gorm.DB, error) { return store.MySQL(ctx, dsn, store.Pool{}) },
	}
}

func withParams(dsn, params string) string {
	switch {
	case params == "":
		return dsn
	case strings.Contains(dsn, "?"):
		return dsn + "&" + params
	}
	return dsn + "?" + params
}
