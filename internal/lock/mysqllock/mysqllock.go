package mysqllock

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"

	"example.com/shop/internal/lock"
)

// Options of a Backend. The zero value is a good one.
type Options struct {
	// Table is the lock table's name, schema.table if it is in another schema:
	// letters, digits and underscores. Default "locks".
	Table string

	// PollMin and PollMax are how long a waiter sleeps between two looks at the
	// row: at first, and at most. Defaults 5 ms and 100 ms.
	PollMin time.Duration
	PollMax time.Duration
}

var tableName = regexp.MustCompile(`^(\w{1,64}\.)?\w{1,64}$`)

// Validate reports the first option that cannot work, by name.
func (o Options) Validate() error {
	switch d := o.withDefaults(); {
	case !tableName.MatchString(d.Table):
		return fmt.Errorf("mysqllock: Table %q: want letters, digits and underscores, 64 at most", o.Table)
	case d.PollMin < time.Millisecond:
		return fmt.Errorf("mysqllock: PollMin %v: want at least 1ms", o.PollMin)
	case d.PollMax < d.PollMin:
		return fmt.Errorf("mysqllock: PollMax %v: want at least PollMin, %v", o.PollMax, d.PollMin)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Table = cmp.Or(o.Table, "locks")
	o.PollMin = cmp.Or(o.PollMin, 5*time.Millisecond)
	o.PollMax = cmp.Or(o.PollMax, max(100*time.Millisecond, o.PollMin))
	return o
}

// Backend is a lock.Backend over a table of MySQL or MariaDB. See the package
// comment for its promises.
type Backend struct {
	db  *sql.DB
	opt Options
	sql statements
}

var _ lock.Backend = (*Backend)(nil)

// New returns a Backend over the pool, which stays the caller's, to be closed
// after the Locker. The table has to be there: see CreateTable. New panics if o is
// invalid; see Options.Validate.
func New(db *sql.DB, o Options) *Backend {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	return &Backend{db: db, opt: o, sql: newStatements(o.Table)}
}

// CreateTable makes the lock table unless it exists. Any number of processes may
// call it when they start; where migrations make the tables, Schema is for them.
func (b *Backend) CreateTable(ctx context.Context) error {
	if _, err := b.db.ExecContext(ctx, b.sql.create); err != nil {
		return fmt.Errorf("mysqllock: create table %s: %w", b.opt.Table, err)
	}
	return nil
}

// Acquire implements lock.Backend.
func (b *Backend) Acquire(ctx context.Context, c lock.Claim) (g lock.Grant, err error) {
	if len(c.Key) > lock.MaxKey || c.Owner == "" || len(c.Owner) > 255 {
		return g, fmt.Errorf("mysqllock: acquire: key of %d bytes, owner of %d: want at most %d, and 1 to 255",
			len(c.Key), len(c.Owner), lock.MaxKey)
	}
	err = retry(ctx, func() (err error) {
		g, err = b.take(ctx, c)
		if errors.Is(err, sql.ErrNoRows) {
			// Outside of the transaction, which then finds a row to lock.
			if _, err := b.db.ExecContext(ctx, b.sql.insert, []byte(c.Key)); err != nil {
				return err
			}
			g, err = b.take(ctx, c)
		}
		return err
	})
	switch {
	case locked(err): // another transaction has the row all the time
		return lock.Grant{Held: true, Retry: b.opt.PollMax}, nil
	case err != nil:
		return lock.Grant{}, fmt.Errorf("mysqllock: acquire: %w", err)
	}
	return g, nil
}

// take is one attempt. sql.ErrNoRows: the key has no row.
func (b *Backend) take(ctx context.Context, c lock.Claim) (g lock.Grant, err error) {
	err = b.change(ctx, c, func(r row) (change, bool) {
		if r.held() && r.owner != c.Owner {
			g = lock.Grant{Held: true, Retry: r.left}
			return change{}, false
		}
		g = lock.Grant{Fence: r.next(c.Owner)}
		return change{fence: g.Fence, holds: 1}, true
	})
	return g, err
}

// lookLimit is how long a waiter's look at the row may take, so that a connection
// that fell silent does not keep it from a key that is free.
const lookLimit = time.Second

// Wait implements lock.Backend. It looks at the row until the key is free, or
// until a look finds no answer: asking again takes another connection.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	left := g.Retry
	for nap := b.opt.PollMin; ; nap = min(nap*3/2, b.opt.PollMax) {
		// Up to a quarter more, so that waiters who came together spread.
		look := time.NewTimer(min(nap, max(left, time.Millisecond)) + rand.N(nap/4+1))
		select {
		case <-look.C:
		case <-ctx.Done():
			look.Stop()
			return ctx.Err()
		}
		r, err := b.look(ctx, c.Key)
		switch {
		case errors.Is(err, sql.ErrNoRows), errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil
		case err != nil:
			return fmt.Errorf("mysqllock: wait: %w", err)
		case !r.held() || r.owner == c.Owner:
			return nil
		}
		left = r.left
	}
}

// look reads the row, locks nothing, and takes lookLimit at most.
func (b *Backend) look(ctx context.Context, key string) (row, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return scan(b.db.QueryRowContext(ctx, b.sql.look, []byte(key)))
}

// Renew implements lock.Backend.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (fence int64, err error) {
	held := false
	err = retry(ctx, func() error {
		return b.change(ctx, c, func(r row) (change, bool) {
			held, fence = r.held() && r.owner == c.Owner, max(r.fence, c.Fence)
			return change{fence: fence}, held
		})
	})
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !held:
		return 0, lock.ErrLost
	case err != nil:
		return 0, fmt.Errorf("mysqllock: renew: %w", err)
	}
	return fence, nil
}

// Release implements lock.Backend.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	freed, err := b.exec(ctx, b.sql.release, c.Fence, []byte(c.Key), []byte(c.Owner))
	switch {
	case err != nil:
		return fmt.Errorf("mysqllock: release: %w", err)
	case freed == 0:
		return lock.ErrLost
	}
	return nil
}

// Close implements lock.Backend. There is nothing to free.
func (b *Backend) Close() error { return nil }

// sweepRows are looked at in one statement.
const sweepRows = 500

// Sweep deletes the rows of keys that have been free, and whose fence the clock has
// left behind, for at least keep, and returns how many. It reads 500 rows by name at
// a time, without locking them, and locks only those that it deletes.
func (b *Backend) Sweep(ctx context.Context, keep time.Duration) (removed int64, err error) {
	if keep < time.Second {
		return 0, fmt.Errorf("mysqllock: sweep: keep %v: want at least 1s", keep)
	}
	us := keep.Microseconds()
	for after, more := []byte{}, true; more; {
		var unused [][]byte
		unused, after, more, err = b.unused(ctx, us, after)
		for _, name := range unused {
			var n int64
			if n, err = b.exec(ctx, b.sql.remove, name, us, us); err != nil { // looks again: it may be in use now
				break
			}
			removed += n
		}
		if err != nil {
			return removed, fmt.Errorf("mysqllock: sweep: %w", err)
		}
	}
	return removed, nil
}

// unused lists the names behind after that can go. It returns the last name that it
// has read, and whether there are more.
func (b *Backend) unused(ctx context.Context, us int64, after []byte) (names [][]byte, last []byte, more bool, err error) {
	rows, err := b.db.QueryContext(ctx, b.sql.list, us, us, after, sweepRows)
	if err != nil {
		return nil, nil, false, err
	}
	defer func() { _ = rows.Close() }()
	read := 0
	for ; rows.Next(); read++ {
		var unused bool
		last = nil
		if err := rows.Scan(&last, &unused); err != nil {
			return nil, nil, false, err
		}
		if unused {
			names = append(names, last)
		}
	}
	return names, last, read == sweepRows, rows.Err()
}

// exec runs one statement, again if it meets others, and returns how many rows it
// changed.
func (b *Backend) exec(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = retry(ctx, func() error {
		result, err := b.db.ExecContext(ctx, statement, args...)
		if err == nil {
			n, err = result.RowsAffected()
		}
		return err
	})
	return n, err
}
