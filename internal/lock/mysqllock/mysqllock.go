package mysqllock

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lock"
)

// Backend is a lock.Backend over a table of MySQL or MariaDB. See the package comment for its promises.
type Backend struct {
	db      *sql.DB
	version atomic.Pointer[string] // of the server; nil until it was asked
}

// New returns a Backend over the table locks, which CreateTable creates. The caller closes the pool after the Locker.
func New(db *sql.DB) *Backend { return &Backend{db: db} }

// CreateTable creates the table locks unless a table of this name exists. Any number of processes may call it at the same
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
	case locked(err): // other transactions had locked the row at each try
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
	pollMost  = 100 * time.Millisecond // between two later reads
	pollLimit = time.Second            // time limit of a read: a dead connection must not delay a waiter for longer
)

// Wait implements lock.Backend. It reads the row until the key is free or a read times out. After a timeout, the next
// request takes another connection.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	left := g.Retry
	for nap := pollFirst; ; nap = min(nap*3/2, pollMost) {
		// A jitter of up to a quarter of the pause spreads waiters that came at the same time.
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

// asHolder calls change until there is no conflict. If no row changes, the owner does not hold the key: lock.ErrLost.
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

// Holder implements lock.Backend. It reads Since from the fence, which is not a time after Lease.Raise.
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

// Evict implements lock.Backend. It renews the lease with a TTL of zero.
func (b *Backend) Evict(ctx context.Context, key, owner string) error {
	_, err := b.Renew(ctx, lock.Claim{Key: key, Owner: owner})
	return err
}

// Close implements lock.Backend. There is nothing to free.
func (b *Backend) Close() error { return nil }

//go:embed schema.sql
var schema string

// now is the database's clock, in microseconds since 1970.
const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

// The statements. A statement that changes a row stores the row's fence by LAST_INSERT_ID, which the server returns with
// its answer; 0 means that the WHERE matched no row. The fence is set first, because it depends on the former owner.
const (
	readRow = "SELECT owner, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), deadline), fence FROM locks WHERE name = ?"

	// insertRow inserts a free row unless the key has a row.
	insertRow = "INSERT IGNORE INTO locks (name, owner, fence, deadline) VALUES (?, '', 0, UTC_TIMESTAMP(6))"

	// The fence is the time of the clock, unless the clock is behind the row. A holder whose lease ran out has not reported
	// its numbers, so the fence skips all that it may have used. An owner that asks again has used none.
	setTaken = "fence = LAST_INSERT_ID(GREATEST(fence + IF(owner IN ('', ?), 1, 65536), " + now + "))," +
		" owner = ?, deadline = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND"
	ifFree = "(owner IN ('', ?) OR deadline <= UTC_TIMESTAMP(6))"

	setRenewed = "fence = LAST_INSERT_ID(GREATEST(fence, ?)), deadline = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND"
	ifHeld     = "owner = ? AND deadline > UTC_TIMESTAMP(6)"

	// A release may wait for the row: it is correct whenever it happens.
	releaseRow = "UPDATE locks SET fence = LAST_INSERT_ID(GREATEST(fence, ?)), owner = '', deadline = UTC_TIMESTAMP(6)" +
		" WHERE name = ? AND " + ifHeld
)

// row is the state of a key, by the database's clock.
type row struct {
	owner string
	left  time.Duration // of the lease, if there is an owner
	fence int64         // the highest reported one
}

func (r row) held() bool { return r.owner != "" && r.left > 0 }

// read returns the key's row. sql.ErrNoRows: there is no row.
func (b *Backend) read(ctx context.Context, key string) (r row, err error) {
	var owner []byte
	var left int64
	err = b.db.QueryRowContext(ctx, readRow, []byte(key)).Scan(&owner, &left, &r.fence)
	r.owner, r.left = string(owner), time.Duration(left)*time.Microsecond
	return r, err
}

// change sets the columns of a key's row if the row meets the condition. It returns the fence; 0 if it does not.
//
// If another transaction has locked the row, the statement fails at once. A waiting statement would go on after its caller
// has given up, and its old clock could shorten a lease that was renewed meanwhile. UPDATE has no NOWAIT. In MariaDB,
// change sets the time limit of the statement. In MySQL, it locks the row by a subquery with a LIMIT, without which MySQL
// would merge the subquery into the UPDATE and forget NOWAIT. In MariaDB, such an UPDATE takes seven times as long.
func (b *Backend) change(ctx context.Context, key, set string, values []any, condition string, owner []byte) (int64, error) {
	version := b.version.Load()
	if version == nil {
		version = new(string)
		if err := b.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(version); err != nil {
			return 0, err
		}
		b.version.Store(version)
	}
	if strings.Contains(*version, "MariaDB") {
		return b.exec(ctx, "SET STATEMENT innodb_lock_wait_timeout = 0 FOR"+
			" UPDATE locks SET "+set+" WHERE name = ? AND "+condition, slices.Concat(values, []any{[]byte(key), owner})...)
	}
	return b.exec(ctx, "UPDATE locks JOIN (SELECT name AS this FROM locks WHERE name = ? LIMIT 1 FOR UPDATE NOWAIT) AS row_lock"+
		" ON name = this SET "+set+" WHERE "+condition, slices.Concat([]any{[]byte(key)}, values, []any{owner})...)
}

// exec returns the LAST_INSERT_ID of a statement.
func (b *Backend) exec(ctx context.Context, statement string, args ...any) (id int64, err error) {
	result, err := b.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// retry calls f until there is no conflict, a few times. A random back-off keeps statements from colliding again.
func retry(ctx context.Context, f func() error) error {
	const attempts = 8
	for attempt := 1; ; attempt++ {
		err := f()
		if attempt == attempts || !conflict(err) {
			return err
		}
		select {
		case <-time.After(rand.N(time.Millisecond << attempt)):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// conflict reports whether another transaction caused the error, so that trying again can help: by a lock, a deadlock
// (ER_LOCK_DEADLOCK), or a change of the row (ER_CHECKREAD, in MariaDB with innodb_snapshot_isolation).
func conflict(err error) bool { return locked(err) || numbered(err, 1213, 1020) }

// locked reports whether another transaction has locked the row: ER_LOCK_NOWAIT or, from MariaDB, ER_LOCK_WAIT_TIMEOUT.
func locked(err error) bool { return numbered(err, 3572, 1205) }

// numbered reports whether the server answered with an error that has one of these numbers.
func numbered(err error, numbers ...uint16) bool {
	answer, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, answer.Number)
}
