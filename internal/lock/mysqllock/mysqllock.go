package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/lock"
)

// Backend is a lock.Backend over a table of MySQL or MariaDB. See the package
// comment for its promises.
type Backend struct {
	db    *sql.DB
	opt   Options
	sql   statements
	sweep sweeper
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
	if err != nil {
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
// until a look finds no answer: whoever asks again takes another connection.
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

// look is one, locks nothing, and takes lookLimit at most.
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
	var freed int64
	err := retry(ctx, func() error {
		result, err := b.db.ExecContext(ctx, b.sql.release, c.Fence, []byte(c.Key), []byte(c.Owner))
		if err != nil {
			return err
		}
		freed, err = result.RowsAffected()
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("mysqllock: release: %w", err)
	case freed == 0:
		return lock.ErrLost
	}
	b.sweepNow()
	return nil
}

// Close waits for a sweep under way, which it ends. The pool stays open.
func (b *Backend) Close() error {
	b.sweep.close()
	return nil
}
