package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lock"
)

// Backend is a lock.Backend over a table of MySQL or MariaDB. See the package comment for its promises.
type Backend struct {
	db      *sql.DB
	version atomic.Pointer[string] // of the server; nil: not asked yet
}

// New returns a Backend over the table locks. The pool stays the caller's, to be closed after the Locker. The table has
// to exist: see CreateTable.
func New(db *sql.DB) *Backend { return &Backend{db: db} }

// CreateTable creates the table locks unless a table of that name exists. Any number of processes may call it at the same
// time. schema.sql has the statement for shops that create tables by migrations.
func (b *Backend) CreateTable(ctx context.Context) error {
	if _, err := b.db.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("mysqllock: create table locks: %w", err)
	}
	return nil
}

// Acquire implements lock.Backend.
func (b *Backend) Acquire(ctx context.Context, c lock.Claim) (g lock.Grant, err error) {
	err = retry(ctx, func() (err error) {
		g, err = b.take(ctx, c)
		if errors.Is(err, sql.ErrNoRows) {
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
func (b *Backend) take(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	me := []byte(c.Owner)
	fence, err := b.change(ctx, c.Key, setTaken, []any{me, me, c.TTL.Microseconds()}, ifFree, me)
	if err != nil || fence > 0 {
		return lock.Grant{Fence: fence}, err
	}
	r, err := b.read(ctx, c.Key)
	return lock.Grant{Held: true, Retry: max(r.left, 0)}, err
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
		r, err := b.read(reading, c.Key)
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
	return asHolder(ctx, "renew", func() (int64, error) {
		return b.change(ctx, c.Key, setRenewed, []any{c.Fence, c.TTL.Microseconds()}, ifHeld, []byte(c.Owner))
	})
}

// Release implements lock.Backend.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	_, err := asHolder(ctx, "release", func() (int64, error) {
		return b.exec(ctx, releaseRow, c.Fence, []byte(c.Key), []byte(c.Owner))
	})
	return err
}

// asHolder calls change until it meets no conflict. If it changes no row, the owner does not hold the key: lock.ErrLost.
func asHolder(ctx context.Context, doing string, change func() (fence int64, err error)) (fence int64, err error) {
	err = retry(ctx, func() (err error) {
		fence, err = change()
		return err
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("mysqllock: %s: %w", doing, err)
	case fence == 0:
		return 0, lock.ErrLost
	}
	return fence, nil
}

// Holder implements lock.Backend. Since is read from the fence: after Lease.Raise, it is not a time.
func (b *Backend) Holder(ctx context.Context, key string) (lock.Holder, error) {
	r, err := b.read(ctx, key)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !r.held():
		return lock.Holder{}, nil
	case err != nil:
		return lock.Holder{}, fmt.Errorf("mysqllock: holder: %w", err)
	}
	return lock.Holder{Owner: r.owner, Since: time.UnixMicro(r.fence), Remaining: r.left}, nil
}

// Evict implements lock.Backend: it renews the lease, for no time.
func (b *Backend) Evict(ctx context.Context, key, owner string) error {
	_, err := b.Renew(ctx, lock.Claim{Key: key, Owner: owner})
	return err
}

// Close implements lock.Backend. There is nothing to free.
func (b *Backend) Close() error { return nil }
