package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/store"
)

// "As a URI, the path may hold any character."
func TestSQLite_oddPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"shop.db", "a b.db", "what?.db", "100%.db", "%41.db", "a#b&c=d;e.db", "ü.db", `quote's"s.db`, "file:x.db", "a+b.db",
	} {
		path := filepath.Join(t.TempDir(), name)
		db := openFile(t, path)
		if _, err := store.Migrate(t.Context(), db); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: no such file: %v", name, err)
		}
		if err := store.Close(db); err != nil {
			t.Errorf("%q: close: %v", name, err)
		}
		left, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(left) != 1 || left[0].Name() != name {
			t.Errorf("%q: got files %v (%v), want it alone", name, left, err)
		}
	}
}

func TestSQLite_refusesPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", ":memory:", "file:shop.db"} {
		if _, err := store.SQLite(t.Context(), path); !errors.Is(err, store.ErrSettings) {
			t.Errorf("%q: got %v, want ErrSettings", path, err)
		}
	}
	// At once: t.Context has no deadline, waiting would hang.
	missing := filepath.Join(t.TempDir(), "missing", "shop.db")
	if _, err := store.SQLite(t.Context(), missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing folder: got %v, want an error that names the path", err)
	}
	text := filepath.Join(t.TempDir(), "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.SQLite(t.Context(), text); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("another file: got %v, want an error that names the path", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.SQLite(ended, filepath.Join(t.TempDir(), "shop.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v, want context.Canceled", err)
	}
}

// The settings arrive on each connection.
func TestSQLite_session(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "shop.db"))
	for range 8 { // more than there are connections
		var journal string
		var patience, synchronous int
		err := db.Connection(func(conn *gorm.DB) error {
			return errors.Join(
				conn.Raw("PRAGMA journal_mode").Row().Scan(&journal),
				conn.Raw("PRAGMA busy_timeout").Row().Scan(&patience),
				conn.Raw("PRAGMA synchronous").Row().Scan(&synchronous))
		})
		if err != nil {
			t.Fatal(err)
		}
		if journal != "wal" || patience != 5000 || synchronous != 1 {
			t.Errorf("got journal %s, busy timeout %d, synchronous %d", journal, patience, synchronous)
		}
	}
}

func openFile(t *testing.T, path string) *gorm.DB {
	t.Helper()
	db, err := store.SQLite(t.Context(), path)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	t.Cleanup(func() { _ = store.Close(db) })
	return db
}

// "It is made with mode 0600, and what SQLite keeps beside it has the same", also in
// a folder that everybody reads.
func TestSQLite_mode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	db := openFile(t, filepath.Join(dir, "shop.db"))
	if _, err := store.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("got %v, %v, want the database, its log and its index", files, err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, %v, want 0600", file.Name(), info.Mode(), err)
		}
	}
}
