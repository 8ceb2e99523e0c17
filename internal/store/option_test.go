package store_test

import (
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"example.com/shop/internal/store"
)

// "Through makes the pool of connections with open."
func TestThrough(t *testing.T) {
	t.Parallel()
	var made *sql.DB
	db, err := store.SQLite(t.Context(), filepath.Join(t.TempDir(), "shop.db"), store.Through(func(c driver.Connector) *sql.DB {
		made = sql.OpenDB(c)
		return made
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(db) })
	if conns, err := db.DB(); err != nil || conns != made {
		t.Errorf("got connections %v, %v, want %v", conns, err, made)
	}
}
