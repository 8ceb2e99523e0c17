package mysqllock_test

import (
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
)

// A fence that is ahead of the clock, raised above what somebody saw elsewhere or
// minted before the clock fell back, goes on from there.
func TestBackend_FenceAheadOfClock(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		db.SetMaxOpenConns(1)
		b := newBackend(t, db, mysqllock.Options{})
		exec(t, db, "SET TIMESTAMP = 1700000000")
		defer exec(t, db, "SET TIMESTAMP = DEFAULT")
		first := lock.Claim{Key: "key", Owner: "first", TTL: time.Second}
		ahead := mustGrant(t, b, first) + 3_600_000_000

		renewed := first
		renewed.Fence = ahead
		if fence, err := b.Renew(bounded(t), renewed); err != nil || fence != ahead {
			t.Errorf("Renew: %d, %v; want %d", fence, err, ahead)
		}
		if fence, err := b.Renew(bounded(t), first); err != nil || fence != ahead {
			t.Errorf("Renew with a lower fence: %d, %v; want %d", fence, err, ahead)
		}
		if fence := mustGrant(t, b, first); fence != ahead+1 {
			t.Errorf("fence %d for the owner that asks again, want %d", fence, ahead+1)
		}

		// It numbers hand-offs, and crashes before it tells: the next one is above all
		// that it may have used.
		exec(t, db, "SET TIMESTAMP = 1700000002")
		second := lock.Claim{Key: "key", Owner: "second", TTL: time.Second}
		fence := mustGrant(t, b, second)
		if used := ahead + 1 + 65_535; fence <= used {
			t.Errorf("fence %d, want more than %d, which the holder before may have used", fence, used)
		}

		// It tells with its release.
		second.Fence = fence + 1000
		if err := b.Release(bounded(t), second); err != nil {
			t.Fatal(err)
		}
		if fence := mustGrant(t, b, first); fence != second.Fence+1 {
			t.Errorf("fence %d, want %d", fence, second.Fence+1)
		}
	})
}
