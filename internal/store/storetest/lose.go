package storetest

import (
	"database/sql/driver"
	"testing"

	"gorm.io/gorm"
)

// Lose makes every read through db fail as if its connection were lost.
func Lose(t testing.TB, db *gorm.DB) {
	t.Helper()
	lose := func(tx *gorm.DB) { _ = tx.AddError(driver.ErrBadConn) }
	if err := db.Callback().Query().Before("gorm:query").Register("lose the connection", lose); err != nil {
		t.Fatal(err)
	}
	if err := db.Callback().Row().Before("gorm:row").Register("lose the connection", lose); err != nil {
		t.Fatal(err)
	}
}
