package store

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// "columns returns the columns that the migrations make", all of them, for MySQL and for SQLite.
func TestStore_columns(t *testing.T) {
	t.Parallel()
	s, err := SQLite(t.Context(), filepath.Join(t.TempDir(), "shop.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	columns, _ := s.columns()
	tables, err := s.tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		delete(tables[c.table], c.name)
	}
	for table, rest := range tables {
		if len(rest) > 0 && table != "goose_db_version" && table != "sqlite_sequence" {
			t.Errorf("table %s: columns returns none for %v", table, rest)
		}
	}
	mysql, _ := new(Store).columns()
	if diff := cmp.Diff(columns, mysql, cmp.AllowUnexported(column{})); diff != "" {
		t.Errorf("columns (-SQLite +MySQL):\n%s", diff)
	}
}

// "MySQL has the collation utf8mb4_0900_bin from 8.0.17 on, MariaDB has SKIP LOCKED from 10.6 on."
func TestSupported(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"8.0.16": false, "8.0.17": true, "8.0.36-28": true, "9.7.0": true, "10.0.1": true, "5.7.44-log": false, "odd": false,
		"10.5.27-MariaDB": false, "10.6.0-MariaDB-log": true, "10.11.18-MariaDB-0+deb12u1": true, "12.0.2-MariaDB": true,
	} {
		if err := supported(version); (err == nil) != want {
			t.Errorf("%s: got %v, want it to be supported: %v", version, err, want)
		}
	}
}
