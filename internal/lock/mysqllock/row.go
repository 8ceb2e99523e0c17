package mysqllock

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lock"
)

//go:embed schema.sql
var schema string

const (
	// The row: owner, microseconds left of its lease, fence, and the time in microseconds since 1970.
	readRow = `
SELECT owner, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), deadline),
       fence, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM locks WHERE name = ?`

	lockRow = readRow + ` FOR UPDATE NOWAIT` // a wait would make the clock's value old

	// A free row, where there is none.
	insertRow = `INSERT IGNORE INTO locks (name, owner, fence, deadline) VALUES (?, '', 0, UTC_TIMESTAMP(6))`

	// A grant or a renewal, with the row locked.
	setRow = `
UPDATE locks SET owner = ?, fence = ?, deadline = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
 WHERE name = ?`

	// A release needs no SELECT before: the WHERE has its condition.
	releaseRow = `
UPDATE locks SET owner = '', fence = GREATEST(fence, ?), deadline = UTC_TIMESTAMP(6)
 WHERE name = ? AND owner = ? AND deadline > UTC_TIMESTAMP(6)`
)

// handoffs is how many numbers after its fence a holder may have used without reporting them: see lock.Grant.Fence.
const handoffs = 65_535

// row is the state of a key, by the database's clock.
type row struct {
	owner string
	left  time.Duration // of the lease, if there is an owner
	fence int64         // the highest in use, as far as it was reported
	now   int64         // microseconds since 1970
}

func scan(r *sql.Row) (row, error) {
	var owner []byte
	var left, fence, now int64
	err := r.Scan(&owner, &left, &fence, &now)
	return row{string(owner), time.Duration(left) * time.Microsecond, fence, now}, err
}

func (r row) held() bool { return r.owner != "" && r.left > 0 }

// next is the fence of the next grant: the clock, unless that is behind the row. A holder whose lease ran out has not
// reported the numbers that it used, so all that it may have used are left out; an owner that asks again has used none.
func (r row) next(owner string) int64 {
	if r.owner != "" && r.owner != owner {
		return max(r.fence+handoffs+1, r.now)
	}
	return max(r.fence+1, r.now)
}

// change locks and reads the claim's row in a transaction. If decide returns ok, it makes the claim's owner the holder
// for the claim's TTL, with the fence that decide returns. sql.ErrNoRows: the key has no row.
func (b *Backend) change(ctx context.Context, c lock.Claim, decide func(row) (fence int64, ok bool)) error {
	tx, err := b.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	committing := false
	defer func() {
		if !committing {
			_ = within(ctx, tx.Rollback) // if it fails, the connection has failed, too
		}
	}()
	r, err := scan(tx.QueryRowContext(ctx, lockRow, []byte(c.Key)))
	if err != nil {
		return err
	}
	fence, ok := decide(r)
	if !ok {
		return nil
	}
	_, err = tx.ExecContext(ctx, setRow, []byte(c.Owner), fence, c.TTL.Microseconds(), []byte(c.Key))
	if err != nil {
		return err
	}
	committing = true
	return within(ctx, tx.Commit)
}

// within ends a transaction, and waits until ctx ends, since neither COMMIT nor ROLLBACK takes a context. A late COMMIT
// does no harm: the row stays locked until then, and the UPDATE has set its deadline before.
func within(ctx context.Context, end func() error) error {
	done := make(chan error, 1)
	go func() { done <- end() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempts is how often a statement or a transaction is tried if it conflicts with others.
const attempts = 8

// retry calls f until it meets no conflict, a few times. It backs off for a random time in between, so that
// transactions that collided do not collide again.
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

// conflict reports whether another transaction caused the error, so that trying again can help.
func conflict(err error) bool {
	number := errno(err)
	return locked(err) || number == 1213 || // ER_LOCK_DEADLOCK
		number == 1020 // ER_CHECKREAD: the row has changed; MariaDB with innodb_snapshot_isolation
}

// locked reports whether another transaction has locked the row.
func locked(err error) bool {
	number := errno(err)
	return number == 3572 || // ER_LOCK_NOWAIT, of MySQL
		number == 1205 // ER_LOCK_WAIT_TIMEOUT; of MariaDB, for NOWAIT as well
}

// errno is the server's number of an error; 0 if it is not the server's.
func errno(err error) uint16 {
	if answer, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return answer.Number
	}
	return 0
}
