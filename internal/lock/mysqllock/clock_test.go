package mysqllock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
)

// "The deadline is judged by the database's clock". The session's clock is set:
// a lease of an hour runs out an hour later to the microsecond, in no time.
func TestBackend_DatabaseClock(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		// A time zone with a summer time, and the middle of the hour that its clocks show twice.
		db := open(t, with(t, dsn, "time_zone", "'-05:00'"))
		db.SetMaxOpenConns(1) // one session, one clock
		b := newBackend(t, db, mysqllock.Options{})
		at := func(clock string) { exec(t, db, "SET TIMESTAMP = "+clock) }
		defer at("DEFAULT")
		me := lock.Claim{Key: "key", Owner: "me", TTL: time.Hour}
		other := lock.Claim{Key: "key", Owner: "other", TTL: time.Hour}

		at("1700000000.25")
		if fence := mustGrant(t, b, me); fence != 1_700_000_000_250_000 {
			t.Errorf("fence %d, want the clock in microseconds", fence)
		}
		at("1700003600.249999")
		if g := mustBeHeld(t, b, other); g.Retry != time.Microsecond {
			t.Errorf("the holder has %v left, want 1µs", g.Retry)
		}
		if _, err := b.Renew(bounded(t), me); err != nil {
			t.Errorf("Renew in the last moment: %v", err)
		}
		at("1700007200.249999")
		if _, err := b.Renew(bounded(t), me); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Renew at the deadline: %v, want ErrLost", err)
		}
		if err := b.Release(bounded(t), me); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release at the deadline: %v, want ErrLost", err)
		}
		mustGrant(t, b, other)
		mustBeHeld(t, b, me)
	})
}

// Two renewals in the same microsecond change nothing in the row; the second is
// not taken for a loss.
func TestBackend_RenewTwiceAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		db.SetMaxOpenConns(1)
		b := newBackend(t, db, mysqllock.Options{})
		exec(t, db, "SET TIMESTAMP = 1700000000")
		defer exec(t, db, "SET TIMESTAMP = DEFAULT")
		c := lock.Claim{Key: "key", Owner: "me", TTL: time.Hour}
		want := mustGrant(t, b, c)
		for range 3 {
			if fence, err := b.Renew(bounded(t), c); err != nil || fence != want {
				t.Errorf("Renew: %d, %v; want %d", fence, err, want)
			}
		}
	})
}

// "Durations are all that a client sends", and each value is a parameter: no
// statement depends on the key, and no argument is a client's time. The database
// lives in 2023, so the one number that is a time, the fence, can be told apart.
func TestBackend_SendsNoTime(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db, spy := spied(t, dsn)
		b := newBackend(t, db, mysqllock.Options{})
		db.SetMaxOpenConns(1)
		exec(t, db, "SET TIMESTAMP = 1700000000")
		defer exec(t, db, "SET TIMESTAMP = DEFAULT")
		scene := len(spy.all())
		run := func(key, owner string) {
			c := lock.Claim{Key: key, Owner: owner, TTL: time.Hour}
			mustGrant(t, b, c)
			g := mustBeHeld(t, b, lock.Claim{Key: key, Owner: owner + "'s rival", TTL: time.Hour})
			if err := b.Wait(bounded(t), c, g); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Renew(bounded(t), c); err != nil {
				t.Fatal(err)
			}
			if err := b.Release(bounded(t), c); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Sweep(bounded(t)); err != nil {
				t.Fatal(err)
			}
		}
		run("sku:42", "me")
		first := len(spy.all())
		run("sku:43' OR ''='", "you")
		statements := map[string]bool{}
		const day = 86_400_000_000
		for i, c := range spy.all()[scene:] {
			if i < first-scene {
				statements[c.statement] = true
			} else if !statements[c.statement] {
				t.Errorf("another key makes another statement: %s", c.statement)
			}
			if strings.Contains(c.statement, "sku") {
				t.Errorf("a value in the statement: %s", c.statement)
			}
			for _, arg := range c.args {
				switch arg := arg.(type) {
				case []byte:
				case int64:
					if arg > day && (arg-1_700_000_000_000_000)/day != 0 {
						t.Errorf("%d may be a time, in %s", arg, c.statement)
					}
				default:
					t.Errorf("argument %v (%T) of %s", arg, arg, c.statement)
				}
			}
		}
		if len(statements) == 0 {
			t.Error("nothing was noted")
		}
	})
}
