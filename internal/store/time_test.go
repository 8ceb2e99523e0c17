package store_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "Times are UTC, to the microsecond (type Time)", and sort.
func TestTime(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 5*3600+1800)
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		mustExec(t, db, "CREATE TABLE moments (at DATETIME(6) NOT NULL)")
		sorted := []time.Time{
			time.Date(1999, 12, 31, 23, 59, 59, 999999000, time.UTC),
			time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC), // within the hour that many clocks skip
			time.Date(2026, 3, 29, 1, 30, 0, 1000, time.UTC),
			time.Date(2026, 3, 29, 7, 0, 0, 123456789, east), // 01:30 UTC
			time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC),
		}
		for _, at := range []int{3, 0, 4, 2, 1} {
			if err := db.Exec("INSERT INTO moments VALUES (?)", store.Time{Time: sorted[at]}).Error; err != nil {
				t.Fatal(err)
			}
		}
		var got []store.Time
		if err := db.Raw("SELECT at FROM moments ORDER BY at").Scan(&got).Error; err != nil {
			t.Fatal(err)
		}
		if len(got) != len(sorted) {
			t.Fatalf("got %d moments, want %d", len(got), len(sorted))
		}
		for i := range sorted {
			want := sorted[i].UTC().Truncate(time.Microsecond)
			if got[i].Time != want { // UTC itself, not only the same moment
				t.Errorf("moment %d: got %v, want %v", i, got[i].Time, want)
			}
			var n int
			err := db.Raw("SELECT COUNT(*) FROM moments WHERE at = ?", store.Time{Time: sorted[i]}).Row().Scan(&n)
			if err != nil || n != 1 {
				t.Errorf("moment %d: found %d times (%v), want once", i, n, err)
			}
		}
	})
	if err := new(store.Time).Scan(int64(1)); err == nil {
		t.Error("a number was taken for a time")
	}
	if err := new(store.Time).Scan("yesterday"); err == nil {
		t.Error("a word was taken for a time")
	}
}
