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

// Backend is a lock.Backend over a table of MySQL or MariaDB. See the package comment for its promises.
type Backend struct{ db *sql.DB }

var (
	_ lock.Backend   = (*Backend)(nil)
	_ lock.Inspector = (*Backend)(nil)
)

// New returns a Backend over the pool, which stays the caller's, to be closed after the Locker. The table locks has to
// exist: see CreateTable.
func New(db *sql.DB) *Backend { return &Backend{db} }

// CreateTable creates the lock table unless it exists. Any number of processes may call it at the same time. schema.sql
// has the statement for shops that create tables by migrations.
func (b *Backend) CreateTable(ctx context.Context) error {
	if _, err := b.db.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("mysqllock: create table: %w", err)
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
			// Inserted outside of the transaction, which then has a row to lock.
			if _, err := b.db.ExecContext(ctx, insertRow, []byte(c.Key)); err != nil {
				return err
			}
			g, err = b.take(ctx, c)
		}
		return err
	})
	switch {
	case locked(err): // other transactions have locked the row each time
		return lock.Grant{Held: true, Retry: pollMost}, nil
	case err != nil:
		return lock.Grant{}, fmt.Errorf("mysqllock: acquire: %w", err)
	}
	return g, nil
}

// take is one attempt. sql.ErrNoRows: the key has no row.
func (b *Backend) take(ctx context.Context, c lock.Claim) (g lock.Grant, err error) {
	err = b.change(ctx, c, func(r row) (fence int64, ok bool) {
		if r.held() && r.owner != c.Owner {
			g = lock.Grant{Held: true, Retry: r.left}
			return 0, false
		}
		g = lock.Grant{Fence: r.next(c.Owner)}
		return g.Fence, true
	})
	return g, err
}

const (
	pollFirst = 5 * time.Millisecond   // between the first two reads of the row by a waiter
	pollMost  = 100 * time.Millisecond // between two later ones
	pollLimit = time.Second            // time limit of a read: a dead connection must not delay a waiter for longer
)

// Wait implements lock.Backend. It reads the row until the key is free, or until a read times out: the next request
// then takes another connection.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	left := g.Retry
	for nap := pollFirst; ; nap = min(nap*3/2, pollMost) {
		// A jitter of up to a quarter spreads waiters that came at the same time.
		select {
		case <-time.After(min(nap, max(left, time.Millisecond)) + rand.N(nap/4+1)):
		case <-ctx.Done():
			return ctx.Err()
		}
		reading, cancel := context.WithTimeout(ctx, pollLimit)
		r, err := scan(b.db.QueryRowContext(reading, readRow, []byte(c.Key)))
		cancel()
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

// Renew implements lock.Backend.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (fence int64, err error) {
	held := false
	err = retry(ctx, func() error {
		return b.change(ctx, c, func(r row) (int64, bool) {
			held, fence = r.held() && r.owner == c.Owner, max(r.fence, c.Fence)
			return fence, held
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
	freed := int64(0)
	err := retry(ctx, func() error {
		result, err := b.db.ExecContext(ctx, releaseRow, c.Fence, []byte(c.Key), []byte(c.Owner))
		if err == nil {
			freed, err = result.RowsAffected()
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("mysqllock: release: %w", err)
	case freed == 0:
		return lock.ErrLost
	}
	return nil
}

// Holder implements lock.Inspector. Since is read from the fence: after Lease.Raise, it is not a time.
func (b *Backend) Holder(ctx context.Context, key string) (lock.Holder, error) {
	r, err := scan(b.db.QueryRowContext(ctx, readRow, []byte(key)))
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !r.held():
		return lock.Holder{}, nil
	case err != nil:
		return lock.Holder{}, fmt.Errorf("mysqllock: holder: %w", err)
	}
	return lock.Holder{Owner: r.owner, Since: time.UnixMicro(r.fence), Remaining: r.left}, nil
}

// Evict implements lock.Inspector: it renews the lease, for no time.
func (b *Backend) Evict(ctx context.Context, key, owner string) error {
	_, err := b.Renew(ctx, lock.Claim{Key: key, Owner: owner})
	return err
}

// Close implements lock.Backend. There is nothing to free.
func (b *Backend) Close() error { return nil }
