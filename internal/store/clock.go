package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Clock is the SQL expression for the time by the database's clock, in the form
// of a DATETIME(6) column: what all instances agree on. It stands still while a
// statement runs, also while that waits for a lock.
func Clock(db *gorm.DB) string {
	if db.Name() == dialectSQLite {
		return "strftime('%Y-%m-%d %H:%M:%f000', 'now')" // it knows milliseconds
	}
	return "UTC_TIMESTAMP(6)"
}

// Now asks the database what time it is, in UTC.
func Now(ctx context.Context, db *gorm.DB) (time.Time, error) {
	var now Time
	if err := db.WithContext(ctx).Raw("SELECT " + Clock(db)).Row().Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("ask for the database's time: %w", err)
	}
	return now.Time, nil
}
