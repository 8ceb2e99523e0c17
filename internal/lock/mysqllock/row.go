package mysqllock

import (
	"context"
	_ "embed"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

//go:embed schema.sql
var schema string

// now is the database's clock, in microseconds since 1970.
const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

// The statements. Those that change a row store its fence by LAST_INSERT_ID, which the server sends
// back with its answer: 0 if the WHERE matched no row. The fence is set first, since it depends on the former owner.
const (
	readRow = "SELECT owner, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), deadline), fence FROM locks WHERE name = ?"

	// A free row, where there is none.
	insertRow = "INSERT IGNORE INTO locks (name, owner, fence, deadline) VALUES (?, '', 0, UTC_TIMESTAMP(6))"

	// The fence is the clock, unless that is behind the row. A holder whose lease ran out has not reported the numbers
	// that it used, so all that it may have used are left out; an owner that asks again has used none.
	setTaken = "fence = LAST_INSERT_ID(GREATEST(fence + IF(owner IN ('', ?), 1, 65536), " + now + "))," +
		" owner = ?, deadline = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND"
	ifFree = "(owner IN ('', ?) OR deadline <= UTC_TIMESTAMP(6))"

	setRenewed = "fence = LAST_INSERT_ID(GREATEST(fence, ?)), deadline = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND"
	ifHeld     = "owner = ? AND deadline > UTC_TIMESTAMP(6)"

	// A release may wait for the row: it is right whenever it happens.
	releaseRow = "UPDATE locks SET fence = LAST_INSERT_ID(GREATEST(fence, ?)), owner = '', deadline = UTC_TIMESTAMP(6)" +
		" WHERE name = ? AND " + ifHeld
)

// row is the state of a key, by the database's clock.
type row struct {
	owner string
	left  time.Duration // of the lease, if there is an owner
	fence int64         // the highest in use, as far as it was reported
}

func (r row) held() bool { return r.owner != "" && r.left > 0 }

// read returns the key's row. sql.ErrNoRows: there is none.
func (b *Backend) read(ctx context.Context, key string) (r row, err error) {
	var owner []byte
	var left int64
	err = b.db.QueryRowContext(ctx, readRow, []byte(key)).Scan(&owner, &left, &r.fence)
	r.owner, r.left = string(owner), time.Duration(left)*time.Microsecond
	return r, err
}

// change sets the columns of a key's row if the row meets the condition. It returns the fence, 0 if the row does not.
//
// If another transaction has locked the row, the statement fails at once. A statement that waited would go on after its
// caller has gone, and its old clock could shorten a lease that was renewed meanwhile. UPDATE has no NOWAIT. MariaDB sets
// the time limit of one statement. MySQL locks the row by a subquery, which it would merge into the UPDATE without the
// LIMIT, and forget NOWAIT; in MariaDB such an UPDATE takes seven times as long.
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

// attempts is the number of times that a statement is tried if it conflicts with others.
const attempts = 8

// retry calls f until it meets no conflict, a few times. It backs off for a random time in between, so that
// statements that collided do not collide again.
func retry(ctx context.Context, f func() error) error {
	most := 2 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := f()
		if attempt == attempts || !conflict(err) {
			return err
		}
		select {
		case <-time.After(rand.N(most)):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
		most *= 2
	}
}

// conflict reports whether another transaction caused the error, so that trying again can help: by its lock, a deadlock
// (ER_LOCK_DEADLOCK), or a change of the row (ER_CHECKREAD, of MariaDB with innodb_snapshot_isolation).
func conflict(err error) bool { return locked(err) || numbered(err, 1213, 1020) }

// locked reports whether another transaction has locked the row: ER_LOCK_NOWAIT, of MySQL, or ER_LOCK_WAIT_TIMEOUT, of
// MariaDB for NOWAIT as well.
func locked(err error) bool { return numbered(err, 3572, 1205) }

// numbered reports whether the error is the server's, with one of these numbers.
func numbered(err error, numbers ...uint16) bool {
	answer, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, answer.Number)
}
