package main

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite"

	"example.com/shop/internal/app"
)

// spoil makes a unit vanish behind the shop's back, as a lost update does.
func spoil(t *testing.T, data string) {
	t.Helper()
	db, err := sql.Open("sqlite", app.DatabaseFile(data))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE skus SET available = available - 1 WHERE name = ?", "mug"); err != nil {
		t.Fatal(err)
	}
}
