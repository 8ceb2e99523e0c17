package mysqllock_test

import (
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
)

// "deletes those that have been free for Options.Keep: one bounded step", and
// what is minted after it is still higher.
func TestBackend_Sweep(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db, mysqllock.Options{Keep: time.Hour})
		const day = 86_400_000_000
		long24 := 24 * time.Hour
		held := lock.Claim{Key: "x held", Owner: "me", TTL: long24}
		freed := lock.Claim{Key: "x freed", Owner: "me", TTL: long24}
		old := lock.Claim{Key: "x old", Owner: "me", TTL: long24}
		crashed := lock.Claim{Key: "x crashed", Owner: "me", TTL: long24}
		raised := lock.Claim{Key: "x raised", Owner: "me", TTL: long24}
		fences := map[string]int64{}
		for _, c := range []lock.Claim{held, freed, old, crashed, raised} {
			fences[c.Key] = mustGrant(t, b, c)
		}
		for _, c := range []lock.Claim{freed, old, raised} {
			if c == raised {
				c.Fence = fences[c.Key] + 2*day
			}
			if err := b.Release(bounded(t), c); err != nil {
				t.Fatal(err)
			}
		}
		// A day goes by for these.
		exec(t, db, "UPDATE locks SET deadline = deadline - INTERVAL 2 DAY, fence = fence - ? WHERE name IN (?, ?, ?)",
			int64(day), old.Key, crashed.Key, raised.Key)
		exec(t, db, `INSERT INTO locks SELECT CONCAT('many ', LPAD(n, 4, '0')), '', 1, '2000-01-01', 1 FROM (
			WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 700) SELECT n FROM c) numbers`)

		for step, want := range []int{500, 202, 0} {
			removed, err := b.Sweep(bounded(t))
			if err != nil || removed != want {
				t.Errorf("step %d: removed %d rows, %v; want %d", step, removed, err, want)
			}
		}
		for _, c := range []struct {
			lock.Claim
			rows int64
		}{{held, 1}, {freed, 1}, {old, 0}, {crashed, 0}, {raised, 1}} {
			if rows := number(t, db, "SELECT COUNT(*) FROM locks WHERE name = ?", c.Key); rows != c.rows {
				t.Errorf("%s: %d rows, want %d", c.Key, rows, c.rows)
			}
		}
		if fence := mustGrant(t, b, old); fence <= fences[old.Key] {
			t.Errorf("fence %d after %d, whose row was removed", fence, fences[old.Key])
		}
		mustBeHeld(t, b, lock.Claim{Key: held.Key, Owner: "other", TTL: long})
		if removed, err := newBackend(t, db, mysqllock.Options{Keep: -1}).Sweep(bounded(t)); removed != 0 || err != nil {
			t.Errorf("Keep < 0: removed %d rows, %v", removed, err)
		}
	})
}
