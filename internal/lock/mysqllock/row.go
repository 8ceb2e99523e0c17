package mysqllock

import (
	"context"
	"database/sql"
	"time"

	"example.com/shop/internal/lock"
)

// handoffs is how many numbers a holder may have used after its fence without
// telling, as the contract of lock.Grant.Fence has it.
const handoffs = 65_535

// row is how a key stands, by the database's clock.
type row struct {
	owner string
	left  time.Duration // of the lease, if there is an owner
	fence int64         // the highest that the row knows of
	now   int64         // microseconds since 1970
}

func scan(r *sql.Row) (row, error) {
	var owner []byte
	var left, fence, now int64
	err := r.Scan(&owner, &left, &fence, &now)
	return row{string(owner), time.Duration(left) * time.Microsecond, fence, now}, err
}

func (r row) held() bool { return r.owner != "" && r.left > 0 }

// next is the fence of the next grant: the clock, unless that is behind the row. A
// holder that ran out did not tell which numbers it used, so none of those it may
// have used comes again; where it asks itself, nobody uses any.
func (r row) next(owner string) int64 {
	if r.owner != "" && r.owner != owner {
		return max(r.fence+handoffs+1, r.now)
	}
	return max(r.fence+1, r.now)
}

// change is what becomes of a row.
type change struct {
	fence int64
	holds int // 1 for a grant
}

// change looks at the claim's row in a transaction of its own, with the row locked,
// and makes its owner the holder for the claim's TTL if decide says so.
// sql.ErrNoRows: the key has no row.
func (b *Backend) change(ctx context.Context, c lock.Claim, decide func(row) (change, bool)) error {
	tx, err := b.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	committing := false
	defer func() { // also while decide panics
		if !committing {
			_ = within(ctx, tx.Rollback) // where it fails, so has the connection
		}
	}()
	r, err := scan(tx.QueryRowContext(ctx, b.sql.lock, []byte(c.Key)))
	if err != nil {
		return err
	}
	to, ok := decide(r)
	if !ok {
		return nil
	}
	_, err = tx.ExecContext(ctx, b.sql.set, []byte(c.Owner), to.fence, c.TTL.Microseconds(), to.holds, []byte(c.Key))
	if err != nil {
		return err
	}
	committing = true
	return within(ctx, tx.Commit)
}

// within ends a transaction, and waits for that until ctx ends: neither COMMIT nor
// ROLLBACK takes a context. What is left behind does no harm, whenever it gets to
// the server: the row is locked until then, so that who releases or asks again
// waits for it; and the deadline that a COMMIT makes known was set before, by the
// UPDATE.
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
