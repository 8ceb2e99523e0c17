package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

const (
	attempts   = 8 // of a transaction that meets deadlocks
	placeTries = 3 // of an order whose COMMITs are neither answered nor done
	questions  = 5 // about what became of a COMMIT

	txBound     = 30 * time.Second // of a transaction, whatever its caller does, so that none holds its locks for ever
	commitBound = 10 * time.Second // for the answer to COMMIT
	askBound    = 10 * time.Second // for all questions
)

// InTx implements order.Store. SQLite's BEGIN heeds no ctx: it waits for another writer for 5 s at most (busy_timeout).
func (s *Store) InTx(ctx context.Context, placed *order.Draft, fn func(order.Tx) error) error {
	for range placeTries {
		err := s.inTx(ctx, func(t *tx) error { return fn(t) })
		if placed == nil || !errors.Is(err, order.ErrUnknownOutcome) {
			return err
		}
		done, unknown := s.isPlaced(ctx, placed)
		if unknown != nil {
			// Not wrapped: the question's ErrBusy would say that nothing was changed.
			return fmt.Errorf("%w; asked for it: %s", err, unknown.Error())
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("%w: %d commits were rolled back", order.ErrBusy, placeTries)
}

var (
	errAsked   = errors.New("idempotency key is free") // ends a transaction that only asks
	errTooLong = fmt.Errorf("%w: transaction took longer than %v", order.ErrBusy, txBound)
)

// isPlaced finds out whether an unanswered COMMIT placed the order. A plain read proves nothing: it may come before
// that COMMIT has been done. Another transaction that writes the row of the order's key waits until the first has
// ended, and only then is the order there or not. A lost connection, or a lock that the first transaction still holds,
// proves nothing either: the question is repeated. As the COMMIT, it does not heed the cancellation of ctx.
func (s *Store) isPlaced(ctx context.Context, d *order.Draft) (placed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askBound)
	defer cancel()
	for asked := 1; ; asked++ {
		err = s.inTx(ctx, func(t *tx) error {
			if err := t.ClaimKeys(d); err != nil {
				return err
			}
			return errAsked
		})
		if errors.Is(err, errAsked) || errors.Is(err, order.ErrKeyTaken) {
			_, err = s.Order(ctx, d.ID)
		}
		if err == nil || errors.Is(err, order.ErrNotFound) {
			return err == nil, nil
		}
		if asked == questions {
			return false, err
		}
		select {
		case <-time.After(25 * time.Millisecond << asked):
		case <-ctx.Done():
			return false, err
		}
	}
}

// inTx runs fn in a transaction, again after a deadlock. A COMMIT whose answer is lost is order.ErrUnknownOutcome.
func (s *Store) inTx(ctx context.Context, fn func(*tx) error) error {
	for attempt := 1; ; attempt++ {
		err := s.inTxOnce(ctx, fn)
		switch {
		case errors.Is(err, order.ErrUnknownOutcome), isContext(err), !unavailable(err):
			return err
		case classify(err) != conflict:
			return fmt.Errorf("%w: %w", order.ErrBusy, err)
		case attempt == attempts:
			return fmt.Errorf("%w: %d attempts: %w", order.ErrBusy, attempts, err)
		}
		most := min(2*time.Millisecond<<attempt, 100*time.Millisecond)
		select {
		case <-time.After(rand.N(most)):
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// inTxOnce is one attempt: whatever fails before the COMMIT is rolled back, also while fn panics. The transaction ends
// with ctx until its COMMIT begins.
func (s *Store) inTxOnce(ctx context.Context, fn func(*tx) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, txBound, errTooLong)
	defer cancel()
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return withCause(ctx, fmt.Errorf("connection: %w", err))
	}
	begun, err := conn.BeginTx(ctx, nil)
	if err != nil {
		drop(conn, err)
		return withCause(ctx, errors.Join(fmt.Errorf("begin: %w", err), conn.Close()))
	}
	committing := false
	defer func() {
		if !committing {
			_ = finish(conn, begun.Rollback, err) // where it fails, the server rolls back with the connection
		}
	}()

	t := &tx{store: s, db: s.db.Session(&gorm.Session{NewDB: true, Context: ctx})}
	t.db.Statement.ConnPool = begun
	err = fn(t)
	if t.failed != nil && !errors.Is(err, t.failed) { // also where fn dropped it
		err = errors.Join(err, t.failed)
	}
	if err != nil {
		return withCause(ctx, err)
	}
	committing = true
	return commit(ctx, conn, begun)
}

// commit tells a rollback from an unknown outcome. Only an answer that is known to mean a rollback is taken for one.
func commit(ctx context.Context, conn *sql.Conn, begun *sql.Tx) error {
	err := finish(conn, begun.Commit, nil)
	switch f := classify(err); {
	case err == nil:
		return nil
	case isContext(err), errors.Is(err, sql.ErrTxDone): // ctx ended before the COMMIT was sent
		return withCause(ctx, err)
	case f == conflict, f == lockWait, mysqlNumber(err) == groupRefused:
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("%w: %w", order.ErrUnknownOutcome, err)
	}
}

// finish ends a transaction and gives its connection back, and waits no longer than commitBound: neither COMMIT nor
// ROLLBACK takes a context. met is what the transaction met.
func finish(conn *sql.Conn, end func() error, met error) error {
	done := make(chan error, 1)
	go func() {
		err := end()
		drop(conn, errors.Join(met, err))
		_ = conn.Close() // ErrConnDone or a dead connection: the pool knows
		done <- err
	}()
	bound := time.NewTimer(commitBound)
	defer bound.Stop()
	select {
	case err := <-done:
		return err
	case <-bound.C:
		return fmt.Errorf("no answer for %v", commitBound)
	}
}

// drop makes the pool close the connection to a server that refused to work: behind the address may be another one by
// now.
func drop(conn *sql.Conn, err error) {
	if classify(err) == refused {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// tx is one attempt of a transaction.
type tx struct {
	store  *Store
	db     *gorm.DB
	failed error // the first call that failed; nothing is done after it
}

var _ order.Tx = (*tx)(nil)

// do runs a step unless one failed before, and remembers a failure. Deadlocks and lost connections stay what they are,
// for inTx.
func (t *tx) do(what string, step func() error) error {
	if t.failed != nil {
		return t.failed
	}
	err := step()
	if err != nil && !isDomain(err) {
		err = fmt.Errorf("%s: %w", what, err)
	}
	t.failed = err
	return err
}
