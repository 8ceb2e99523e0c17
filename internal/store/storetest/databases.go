// Package storetest gives a test each kind of database: SQLite, and MySQL and MariaDB in containers. A promise must
// hold in all of them, so Each runs the same test on all.
//
// A package that uses storetest needs a TestMain that calls testserver.Wrap.
package storetest

import (
	"path/filepath"
	"testing"

	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
)

// Kind is one kind of database.
type Kind struct {
	Name   string
	Server bool // a server with row locks, not a file with one writer
	dsn    func(testing.TB) string
}

// Kinds is the table of all kinds, SQLite first.
func Kinds() []Kind {
	return []Kind{
		{Name: "SQLite"},
		{Name: "MySQL", Server: true, dsn: testserver.MySQL},
		{Name: "MariaDB", Server: true, dsn: testserver.MariaDB},
	}
}

// Each runs test on a migrated database of each kind, in parallel.
func Each(t *testing.T, test func(t *testing.T, s *store.Store)) {
	EachKind(t, func(t *testing.T, kind Kind) { test(t, kind.New(t, "").Migrated(t)) })
}

// SQLite returns a migrated database in a file, for tests that need only one kind.
func SQLite(t testing.TB) *store.Store { return Kinds()[0].New(t, "").Migrated(t) }

// EachKind runs test for each kind of database, in parallel.
func EachKind(t *testing.T, test func(t *testing.T, kind Kind)) { each(t, Kinds(), test) }

// EachServer is like EachKind, without SQLite, for tests of row locks, the network or a server's clock.
func EachServer(t *testing.T, test func(t *testing.T, kind Kind)) { each(t, Kinds()[1:], test) }

func each(t *testing.T, kinds []Kind, test func(t *testing.T, kind Kind)) {
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// Database is an empty database for one test.
type Database struct {
	dsn, path string
	Link      *testserver.Link // of Through
}

// New makes a database for the test. The DSN of a server gets the params, such as "innodb_lock_wait_timeout=1".
func (k Kind) New(t testing.TB, params string) Database {
	if !k.Server {
		return Database{path: filepath.Join(t.TempDir(), "shop.db")}
	}
	return Database{dsn: k.dsn(t) + "&" + params} // the DSN already has some
}

// Through returns the same database, on a server, behind a link on which judge decides about statements.
func (d Database) Through(t testing.TB, judge func(statement string) testserver.Fate) Database {
	t.Helper()
	d.dsn, d.Link = testserver.Judged(t, d.dsn, judge)
	return d
}

// Open opens the database until the test ends. Two calls return two pools, as in two processes.
func (d Database) Open(t testing.TB) *store.Store {
	t.Helper()
	var s *store.Store
	var err error
	if d.dsn == "" {
		s, err = store.SQLite(t.Context(), d.path, store.Options{})
	} else {
		s, err = store.MySQL(t.Context(), d.dsn, store.Options{})
	}
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// Migrated opens the database with the shop's schema.
func (d Database) Migrated(t testing.TB) *store.Store {
	t.Helper()
	s := d.Open(t)
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return s
}

// Exec runs statements.
func Exec(t testing.TB, s *store.Store, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := s.DB().ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
