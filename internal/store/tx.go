package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"
)

const (
	attempts = 8 // of a transaction that meets deadlocks

	// txBound ends a transaction whatever its caller does, so that none holds its
	// locks for ever. commitBound is how long the answer to COMMIT is waited for.
	txBound     = 30 * time.Second
	commitBound = 10 * time.Second
)

// InTx runs fn in one transaction and commits it if fn returns nil.
//
//   - An error of fn rolls back and comes back as it is. So does a panic.
//   - A Conflict runs the whole fn again, a few times, with jitter; then it is
//     ErrBusy. fn must be fit to be run again.
//   - A LockWait or Lost is ErrBusy, after a rollback: nothing was changed.
//   - BEGIN and statements heed ctx, and a ctx that ends before the COMMIT rolls back. The
//     error then holds ctx.Err() and its cause. The COMMIT itself heeds no ctx:
//     cutting it off would only make its outcome unknown. Nor does the BEGIN of SQLite,
//     whose driver gives it no ctx: it waits for another writer for 5 s at most
//     (busy_timeout), and is then taken back.
//   - A COMMIT whose answer is lost is ErrOutcomeUnknown, joined with the cause.
func InTx(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error {
	for attempt := 1; ; attempt++ {
		err := inTxOnce(ctx, db, fn)
		switch {
		case err == nil || errors.Is(err, ErrOutcomeUnknown) || isContext(err):
			return err
		case Classify(err) == LockWait, Classify(err) == Lost:
			return fmt.Errorf("%w: %w", ErrBusy, err)
		case Classify(err) != Conflict:
			return err
		case attempt == attempts:
			return fmt.Errorf("%w: %d attempts: %w", ErrBusy, attempts, err)
		}
		if err := backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

func inTxOnce(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) (err error) {
	conns, err := db.DB()
	if err != nil {
		return err
	}
	// Waiting for a free connection heeds ctx; the transaction has a context of
	// its own, because database/sql rolls back when a transaction's context ends.
	conn, err := conns.Conn(ctx)
	if err != nil {
		return withCause(ctx, fmt.Errorf("connection: %w", err))
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), txBound)
	defer cancel()
	deaf := context.AfterFunc(ctx, cancel) // BEGIN heeds ctx, too, but for SQLite's
	tx, err := conn.BeginTx(bound, nil)
	deaf()
	if err != nil {
		return withCause(ctx, errors.Join(fmt.Errorf("begin: %w", err), conn.Close()))
	}
	committing := false
	defer func() { // also while fn panics
		if !committing {
			_ = finish(conn, tx.Rollback) // where it fails, the server rolls back with the connection
		}
	}()

	if ctx.Err() != nil {
		return ended(ctx)
	}
	err = fn(statements(ctx, db, tx))
	switch {
	case bound.Err() != nil:
		return errors.Join(fmt.Errorf("%w: transaction took longer than %v", ErrBusy, txBound), err)
	case err != nil:
		return withCause(ctx, err)
	case ctx.Err() != nil:
		return ended(ctx)
	}
	committing = true
	return commit(conn, tx)
}

// statements returns a gorm handle whose statements run in tx and heed ctx.
func statements(ctx context.Context, db *gorm.DB, tx *sql.Tx) *gorm.DB {
	handle := db.Session(&gorm.Session{NewDB: true, Context: ctx})
	handle.Statement.ConnPool = tx
	return handle
}

// commit tells a refusal from an unknown outcome. Only an answer that is known
// to mean a rollback is taken for one.
func commit(conn *sql.Conn, tx *sql.Tx) error {
	err := finish(conn, tx.Commit)
	switch Classify(err) {
	case None:
		return nil
	case Conflict, LockWait:
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}

// finish ends a transaction and gives its connection back, and does not wait
// for longer than commitBound: neither COMMIT nor ROLLBACK takes a context.
func finish(conn *sql.Conn, end func() error) error {
	done := make(chan error, 1)
	go func() {
		err := end()
		_ = conn.Close() // ErrConnDone or a dead connection: the pool knows
		done <- err
	}()
	patience := time.NewTimer(commitBound)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return fmt.Errorf("no answer for %v", commitBound)
	}
}

// backOff waits a random time, longer after each attempt.
func backOff(ctx context.Context, attempt int) error {
	most := min(2*time.Millisecond<<attempt, 100*time.Millisecond)
	select {
	case <-time.After(rand.N(most)):
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}
