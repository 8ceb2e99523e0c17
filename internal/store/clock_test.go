package store_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "The time by the database's clock, in the form of a DATETIME(6) column": it
// compares with what Time writes.
func TestClock(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		now, err := store.Now(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Since(now).Abs(); off > time.Minute || now.Location() != time.UTC {
			t.Errorf("got %v, want now, in UTC", now)
		}
		for shift, want := range map[time.Duration]bool{-time.Hour: true, time.Hour: false} {
			var past bool
			err := db.Raw("SELECT ? <= "+store.Clock(db), store.Time{Time: now.Add(shift)}).Row().Scan(&past)
			if err != nil || past != want {
				t.Errorf("%v from now: got past %v, %v, want %v", shift, past, err, want)
			}
		}
	})
}
