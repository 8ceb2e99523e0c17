package store

import (
	"path/filepath"
	"slices"
	"testing"
)

// "wanted returns the columns that the migrations up to a version make; those for SQLite make the same."
func TestStore_wanted(t *testing.T) {
	t.Parallel()
	s, err := SQLite(t.Context(), filepath.Join(t.TempDir(), "shop.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	wanted := wanted(latest)
	found, err := s.found(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !slices.ContainsFunc(wanted, f.is) && f.Table != "goose_db_version" && f.Table != "sqlite_sequence" {
			t.Errorf("wanted does not return %s.%s", f.Table, f.Name)
		}
	}
	if err := s.CheckSchema(t.Context()); err != nil {
		t.Error(err)
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
