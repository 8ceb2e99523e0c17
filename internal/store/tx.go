package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

const (
	deadlockTries = 8 // of a transaction that is rolled back by deadlocks, or by the end of a primary
	commitTries   = 3 // of a transaction whose COMMITs are neither answered nor done
	confirmTries  = 5 // to find out whether a COMMIT was done

	txTimeout      = 30 * time.Second // of a transaction, so that none holds its locks for ever
	commitTimeout  = 10 * time.Second // for the answer to a COMMIT or ROLLBACK
	confirmTimeout = 10 * time.Second // for all of confirmTries
)

// InTx implements order.Store. SQLite's BEGIN waits for another writer for 5 s at most (busy_timeout).
func (s *Store) InTx(ctx context.Context, fn func(order.Tx) error) error {
	seen := s.changes()
	for range commitTries {
		var inserted []order.Order // by the last attempt
		err := s.inTx(ctx, func(t *tx) error {
			err := fn(t)
			inserted = t.inserted
			return err
		})
		if len(inserted) == 0 || !errors.Is(err, order.ErrUnknownOutcome) {
			return s.confirm(ctx, seen, err)
		}
		done, unknown := s.isPlaced(ctx, inserted[0])
		if unknown != nil {
			// Not wrapped: an ErrBusy of isPlaced would claim that nothing was changed.
			return fmt.Errorf("%w; asked for it: %s", err, unknown.Error())
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("%w: %d commits were rolled back", order.ErrBusy, commitTries)
}

var (
	errAnswered = errors.New("answered") // rolls the transaction of isPlaced back
	errTooLong  = fmt.Errorf("%w: transaction took longer than %v", order.ErrBusy, txTimeout)
)

// isPlaced finds out whether an unanswered COMMIT placed the order. A plain read is not enough: the COMMIT may be done
// after it. A transaction that writes the row of the order's key waits until the first one has ended; after that, the
// order exists or it does not. isPlaced tries again after a lost connection, or while the first transaction still holds
// its locks, and waits for a primary: it outlasts an election. Like the COMMIT, it ignores the cancellation of ctx.
func (s *Store) isPlaced(ctx context.Context, o order.Order) (placed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	for try := 1; ; try++ {
		if s.group != nil {
			_, _ = s.group.await(ctx) // without one, Connect says why
		}
		err = s.inTx(ctx, func(t *tx) (err error) {
			placed, err = t.exists(o)
			return err
		})
		if err == nil || errors.Is(err, errAnswered) {
			return placed, nil
		}
		if try == confirmTries {
			return false, err
		}
		if order.Pause(ctx, 25*time.Millisecond<<try) != nil {
			return false, err
		}
	}
}

// exists reports whether the order exists, if its error is nil or errAnswered.
//
// A member of a group that was replaced as the primary may not know it yet, and roll a transaction back that the others
// have committed: to it, the key is free. So in a group the key is claimed and freed in a transaction that commits:
// only a primary with a majority can commit it, and only after the first one. That the order exists is read in the same
// transaction, since another connection may be to another member.
func (t *tx) exists(o order.Order) (placed bool, err error) {
	err = t.insertKeys(order.UsedKey{Order: o})
	switch {
	case errors.Is(err, order.ErrKeyTaken):
		err = t.db.Raw("SELECT COUNT(*) > 0 FROM orders WHERE id = ?", o.ID).Row().Scan(&placed)
		return placed, cmp.Or(err, errAnswered)
	case err == nil && t.store.group == nil:
		err = errAnswered
	case err == nil:
		err = t.db.Exec("DELETE FROM idempotency_keys WHERE buyer = ? AND idempotency_key = ?", o.Buyer, o.Key).Error
	}
	return false, err
}

// changes returns how often another host has become the primary, for doubt.
func (s *Store) changes() int {
	if s.group == nil {
		return 0
	}
	_, changes, _ := s.group.state()
	return changes
}

// confirm returns a refusal, or the doubt about it if it says that something was missing since changes returned seen. The
// end of an order is final: no server can be wrong about it.
func (s *Store) confirm(ctx context.Context, seen int, refusal error) error {
	for _, missing := range []error{
		order.ErrSoldOut, order.ErrTooManyOpen, order.ErrPurchaseLimit, order.ErrUnknownSKU, order.ErrNotFound, order.ErrNoPayment, order.ErrNothing,
	} {
		if errors.Is(refusal, missing) {
			return cmp.Or(s.doubt(ctx, seen), refusal)
		}
	}
	return refusal
}

// doubt returns an order.ErrBusy if what was read since changes returned seen may have been read from a server that was
// replaced. A primary that was cut off from its group goes on answering reads for the seconds that it takes to notice. But
// it commits nothing, and isPlaced commits, even if the order does not exist.
func (s *Store) doubt(ctx context.Context, seen int) error {
	if s.group == nil {
		return nil
	}
	err := s.group.confirm(ctx, func(ctx context.Context) error {
		_, err := s.isPlaced(ctx, order.Order{Buyer: "confirm", Key: uuid.NewString(), ID: uuid.NewString()})
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: what was read is not confirmed: %s", order.ErrBusy, err.Error())
	case s.changes() != seen:
		return fmt.Errorf("%w: another host has become the primary", order.ErrBusy)
	}
	return nil
}

// inTx runs fn in a transaction, again after a deadlock, and in a group again on another connection if the primary
// refused it or was replaced. A COMMIT whose answer is lost is order.ErrUnknownOutcome.
func (s *Store) inTx(ctx context.Context, fn func(*tx) error) error {
	for try := 1; ; try++ {
		err := s.inTxOnce(ctx, fn)
		if errors.Is(err, order.ErrUnknownOutcome) || isContext(err) || !unavailable(err) {
			return err
		}
		again := classify(err) == conflict || s.group != nil && s.group.doubt(err)
		switch {
		case !again:
			return fmt.Errorf("%w: %w", busy(err), err)
		case try == deadlockTries:
			return fmt.Errorf("%w: %d attempts: %w", busy(err), try, err)
		}
		backOff := min(2*time.Millisecond<<try, 100*time.Millisecond)
		if order.Pause(ctx, rand.N(backOff)) != nil {
			return ended(ctx)
		}
	}
}

// inTxOnce is one attempt. After a failure or a panic before the COMMIT, the transaction is rolled back. The end of ctx
// rolls it back until the COMMIT begins.
func (s *Store) inTxOnce(ctx context.Context, fn func(*tx) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, txTimeout, errTooLong)
	defer cancel()
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return withCause(ctx, fmt.Errorf("connection: %w", err))
	}
	begun, err := conn.BeginTx(ctx, nil)
	if err != nil {
		if classify(err) == refused {
			drop(conn)
		}
		return withCause(ctx, errors.Join(fmt.Errorf("begin: %w", err), conn.Close()))
	}
	committing := false
	defer func() {
		if !committing {
			_ = finish(conn, begun.Rollback, err) // if it fails, the server rolls back when the connection ends
		}
	}()

	t := &tx{store: s, db: s.db.Session(&gorm.Session{NewDB: true, Context: ctx})}
	t.db.Statement.ConnPool = begun
	if err := fn(t); err != nil {
		return withCause(ctx, err)
	}
	committing = true
	return commit(ctx, conn, begun)
}

// commit returns order.ErrUnknownOutcome for every error that is not known to mean a rollback. That of a group, 3100 or
// 3101, is not: a member that left the group while the COMMIT waited rolls the transaction back and says so, and the
// others may have received and committed it.
func commit(ctx context.Context, conn *sql.Conn, begun *sql.Tx) error {
	err := finish(conn, begun.Commit, nil)
	switch {
	case err == nil:
		return nil
	case isContext(err), errors.Is(err, sql.ErrTxDone): // ctx ended before the COMMIT was sent
		return withCause(ctx, err)
	case classify(err) == conflict:
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("%w: %w", order.ErrUnknownOutcome, err)
	}
}

// finish ends a transaction by COMMIT or ROLLBACK and returns its connection to the pool. It waits for commitTimeout at
// most, since neither takes a context. earlier is the error of the transaction so far.
func finish(conn *sql.Conn, end func() error, earlier error) error {
	done := make(chan error, 1)
	go func() {
		err := end()
		failed := err != nil && !errors.Is(err, sql.ErrTxDone)
		if failed || classify(earlier) == refused {
			drop(conn)
		}
		_ = conn.Close() // its error is of a connection that the pool drops anyway
		done <- err
	}()
	timeout := time.NewTimer(commitTimeout)
	defer timeout.Stop()
	select {
	case err := <-done:
		return err
	case <-timeout.C:
		return fmt.Errorf("no answer for %v", commitTimeout)
	}
}

// drop makes the pool close the connection: to a server that refused to work, since another may have taken over its
// address; or whose transaction may still be open, since the next BEGIN would commit that.
func drop(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// tx is one attempt of a transaction.
type tx struct {
	store    *Store
	db       *gorm.DB
	inserted []order.Order
}

// failed says what a statement was for, in an error of the database. Deadlocks and lost connections stay what they are,
// for inTx.
func failed(err error, format string, args ...any) error {
	if err == nil || isDomain(err) {
		return err
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
