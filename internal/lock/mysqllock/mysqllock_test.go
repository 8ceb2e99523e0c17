package mysqllock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/lock/mysqllock"
)

func TestMySQLLock(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		newBackend(t, db, mysqllock.Options{})
		locktest.Run(t, func(*testing.T) locktest.Harness {
			return locktest.Harness{
				Connect: func(t testing.TB) lock.Backend { return mysqllock.New(open(t, dsn), mysqllock.Options{}) },
				Expires: true,
				Fences:  true,
				Raises:  true,
				Forget:  func(t testing.TB) { exec(t, db, "DELETE FROM locks") },
			}
		})
	})
}

// The whole suite once more with the driver's other protocol, and a table of
// another name.
func TestMySQLLock_Interpolated(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		dsn = with(t, dsn, "interpolateParams", "true")
		o := mysqllock.Options{Table: schemaOf(t, dsn) + ".order"}
		newBackend(t, open(t, dsn), o)
		locktest.Run(t, func(*testing.T) locktest.Harness {
			return locktest.Harness{
				Connect: func(t testing.TB) lock.Backend { return mysqllock.New(open(t, dsn), o) },
				Expires: true,
				Fences:  true,
				Raises:  true,
			}
		})
	})
}

// "Owners and keys are compared byte by byte and whole."
func TestBackend_KeysAreBytes(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db, mysqllock.Options{})
		keys := []string{
			"abc", "ABC", "abc ", " abc", "abc\x00", "äbc", "a\u0308bc", "abc%", "ab_", `a\bc`, "'", "\xff\xfe", "🔒",
			strings.Repeat("k", lock.MaxKey), strings.Repeat("k", lock.MaxKey-1),
		}
		for _, key := range keys {
			mustGrant(t, b, lock.Claim{Key: key, Owner: "me", TTL: long})
		}
		if got, want := number(t, db, "SELECT COUNT(*) FROM locks"), int64(len(keys)); got != want {
			t.Errorf("%d rows, want %d", got, want)
		}
		for _, key := range keys {
			mustBeHeld(t, b, lock.Claim{Key: key, Owner: "ME", TTL: long})
			if err := b.Release(bounded(t), lock.Claim{Key: key, Owner: "me", TTL: long}); err != nil {
				t.Errorf("Release(%.20q): %v", key, err)
			}
		}
	})
}

// What does not fit is refused, and not cut: a session without strict mode would.
// Nobody owns the key of a row that is free.
func TestBackend_UnusableNames(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		b := newBackend(t, open(t, with(t, dsn, "sql_mode", "''")), mysqllock.Options{})
		for _, c := range []lock.Claim{
			{Key: strings.Repeat("k", lock.MaxKey+1), Owner: "me", TTL: long},
			{Key: "key", Owner: strings.Repeat("o", 256), TTL: long},
			{Key: "key", TTL: long},
		} {
			if g, err := b.Acquire(bounded(t), c); err == nil {
				t.Errorf("key of %d bytes, owner of %d: %+v, want an error", len(c.Key), len(c.Owner), g)
			}
		}
	})
}

// "whoever comes next finds that the deadline has passed": the row of a crashed
// holder is taken over, and counts its grants.
func TestBackend_CrashedHolder(t *testing.T) {
	const crashed = 2 * time.Second // its TTL: longer than the next takes to come
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db, mysqllock.Options{})
		next := lock.Claim{Key: "key", Owner: "next", TTL: long, Queue: true}
		first := mustGrant(t, b, lock.Claim{Key: "key", Owner: "crashed", TTL: crashed})
		g := mustBeHeld(t, b, next)
		if g.Retry <= 0 || g.Retry > crashed {
			t.Errorf("the holder has %v left, want at most its TTL", g.Retry)
		}
		if err := b.Wait(bounded(t), next, g); err != nil {
			t.Fatalf("Wait: %v", err)
		}
		if fence := mustGrant(t, b, next); fence <= first {
			t.Errorf("fence %d after %d", fence, first)
		}
		if holds := number(t, db, "SELECT holds FROM locks WHERE name = 'key'"); holds != 2 {
			t.Errorf("granted %d times, want 2", holds)
		}
	})
}

// A waiter looks at the row "less and less often", locks nothing, and hears of a
// release by looking.
func TestBackend_WaitLocksNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		b := newBackend(t, db, mysqllock.Options{})
		holder := lock.Claim{Key: "key", Owner: "holder", TTL: long}
		waiter := lock.Claim{Key: "key", Owner: "waiter", TTL: long, Queue: true}
		mustGrant(t, b, holder)
		tx, err := db.BeginTx(bounded(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		exec(t, tx, "UPDATE locks SET owner = '' WHERE name = 'key'") // held by a lock of the database, too
		ctx, cancel := context.WithTimeout(bounded(t), 200*time.Millisecond)
		defer cancel()
		if err := b.Wait(ctx, waiter, lock.Grant{Held: true, Retry: long}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v, want the end of its context: the key is held, and nothing to wait in line for", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- b.Wait(bounded(t), waiter, lock.Grant{Held: true, Retry: long}) }()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("Wait: %v", err)
		}
		mustGrant(t, b, waiter)
	})
}

// Keys that have no row yet do not wait for each other, and one that all want at
// once is granted once.
func TestBackend_NewKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		const owners, keys = 8, 12
		db := open(t, dsn)
		b := newBackend(t, db, mysqllock.Options{})
		var mu sync.Mutex
		granted := map[string]int{}
		var wg sync.WaitGroup
		for i := range owners {
			wg.Go(func() {
				for k := range keys {
					c := lock.Claim{Key: string(rune('a' + k)), Owner: string(rune('A' + i)), TTL: long}
					g, err := b.Acquire(bounded(t), c)
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					if !g.Held {
						mu.Lock()
						granted[c.Key]++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		for key, n := range granted {
			if n != 1 {
				t.Errorf("key %q was granted %d times", key, n)
			}
		}
		if len(granted) != keys {
			t.Errorf("%d keys granted, want %d", len(granted), keys)
		}
	})
}

// "At REPEATABLE READ, the look at a key that has no row yet would lock the gap in
// which other keys are to be inserted": one that stops right after its look does
// not keep another from a key beside.
func TestBackend_LooksLockNoGap(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		dsn = with(t, dsn, "interpolateParams", "true") // one call of the driver for each query
		db, spy := spied(t, dsn)
		stopped := newBackend(t, db, mysqllock.Options{})
		looked, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		spy.afterQuery = func(statement string) {
			if strings.HasSuffix(statement, "FOR UPDATE") {
				once.Do(func() { close(looked); <-goOn })
			}
		}
		granted := make(chan error, 1)
		go func() {
			_, err := stopped.Acquire(bounded(t), lock.Claim{Key: "a", Owner: "me", TTL: long})
			granted <- err
		}()
		<-looked
		mustGrant(t, mysqllock.New(open(t, dsn), mysqllock.Options{}), lock.Claim{Key: "b", Owner: "me", TTL: long})
		close(goOn)
		if err := <-granted; err != nil {
			t.Errorf("Acquire: %v", err)
		}
	})
}

// "Nothing is changed in the sessions of the caller's pool."
func TestBackend_SessionsStayAsTheyWere(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		db.SetMaxOpenConns(1)
		session := func() (s string) {
			isolation := "transaction_isolation"
			if err := db.QueryRowContext(bounded(t), "SELECT @@"+isolation).Scan(&s); err != nil {
				isolation = "tx_isolation"
			}
			err := db.QueryRowContext(bounded(t), "SELECT CONCAT_WS(' ', @@"+isolation+
				", @@autocommit, @@sql_mode, @@time_zone, @@innodb_lock_wait_timeout)").Scan(&s)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		before := session()
		b := newBackend(t, db, mysqllock.Options{})
		c := lock.Claim{Key: "key", Owner: "me", TTL: long}
		mustGrant(t, b, c)
		mustBeHeld(t, b, lock.Claim{Key: "key", Owner: "other", TTL: long})
		if _, err := b.Renew(bounded(t), c); err != nil {
			t.Fatal(err)
		}
		if err := b.Release(bounded(t), c); err != nil {
			t.Fatal(err)
		}
		if after := session(); after != before {
			t.Errorf("session %q, want %q", after, before)
		}
	})
}

// "Validate reports the first option that cannot work, by name", and New panics
// with it.
func TestOptions_Validate(t *testing.T) {
	for name, o := range map[string]mysqllock.Options{
		"Table":   {Table: "locks; DROP TABLE orders"},
		"PollMin": {PollMin: -1},
		"PollMax": {PollMin: time.Second, PollMax: time.Millisecond},
		"Keep":    {Keep: time.Millisecond},
	} {
		err := o.Validate()
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
			continue
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: New accepts it", name)
				}
			}()
			mysqllock.New(nil, o)
		}()
	}
	for _, o := range []mysqllock.Options{{}, {Table: "shop.locks"}, {PollMin: time.Second}, {Keep: -1}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
