package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"gorm.io/gorm"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

const (
	deadlockTries = 8 // of a transaction that a deadlock, or the loss of a primary, rolls back
	commitTries   = 3 // of a transaction whose COMMITs are neither answered nor done
	confirmTries  = 5 // to find out whether a COMMIT was done

	txTimeout      = 30 * time.Second // of a transaction, so that it does not hold locks for ever
	commitTimeout  = 10 * time.Second // for the answer to a COMMIT or ROLLBACK
	confirmTimeout = 10 * time.Second // for all of confirmTries
)

// InTx implements order.Store. SQLite's BEGIN waits for another writer for 5 s at most (busy_timeout).
func (s *Store) InTx(ctx context.Context, fn func(order.Tx) error) error {
	seen := s.changes()
	var err error
	for range commitTries {
		var inserted []order.Order // of the last attempt
		err = s.inTx(ctx, func(t *tx) error {
			defer func() { inserted = t.inserted }()
			return fn(t)
		})
		if len(inserted) == 0 || !errors.Is(err, order.ErrUnknownOutcome) {
			return s.confirm(ctx, seen, err)
		}
		done, unknown := s.isPlaced(ctx, inserted[0])
		if unknown != nil {
			// Not wrapped: an ErrBusy of isPlaced would claim that nothing was changed.
			return fmt.Errorf("%w; asked for the outcome: %s", err, unknown.Error())
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("%w: %d commits were rolled back, the last after: %s", order.ErrBusy, commitTries, err.Error())
}

// isPlaced finds out whether an unanswered COMMIT placed the order. A plain read is not enough, because
// the COMMIT may be done after the read. A transaction that writes the row of the order's key waits
// until the first transaction has ended. Then the order exists or not. isPlaced tries again after a
// lost connection, or while the first transaction holds its locks. It waits for a primary, and so
// outlasts an election. Like the COMMIT, it ignores the cancellation of ctx.
func (s *Store) isPlaced(ctx context.Context, o order.Order) (placed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	other := *s
	other.conn = nil // conn may be the lost connection
	for try := 1; ; try++ {
		if s.group != nil {
			s.group.await(ctx) // without a primary, Connect returns the reason
		}
		err = other.inTx(ctx, func(t *tx) (err error) {
			placed, err = t.exists(o)
			return err
		})
		if err == nil || errors.Is(err, order.ErrNothing) {
			return placed, nil
		}
		if try == confirmTries || order.Pause(ctx, 25*time.Millisecond<<try) != nil {
			return false, err
		}
	}
}

// exists reports whether the order exists. Its error is nil or, if there is nothing to commit, order.ErrNothing.
//
// A member of a group that was replaced as the primary may not know it yet. It may roll back a transaction that the
// others have committed, and then believes that the key is free. So in a group, exists claims and frees the key in a
// transaction that commits: only a primary with a majority can commit it, and only after the first transaction. The
// order is read in the same transaction, because another connection may lead to another member.
func (t *tx) exists(o order.Order) (placed bool, err error) {
	err = t.insertKeys([]order.UsedKey{{Order: o}})
	switch {
	case classify(err) == duplicate:
		err = t.db.Raw("SELECT COUNT(*) > 0 FROM orders WHERE id = ?", o.ID).Row().Scan(&placed)
		return placed, cmp.Or(err, order.ErrNothing)
	case err == nil && t.store.group == nil:
		err = order.ErrNothing
	case err == nil:
		err = t.FreeKeys(order.BuyerKey{Buyer: o.Buyer, Key: o.Key})
	}
	return false, err
}

// changes returns, for unconfirmed, how often another host has become the primary.
func (s *Store) changes() int {
	_, changes, _ := s.Primary()
	return changes
}

// confirm returns refusal. If refusal says that something is missing, but the server may have been
// replaced since changes returned seen, confirm returns an order.ErrBusy instead. The end of an order
// is final: no server is wrong about it.
func (s *Store) confirm(ctx context.Context, seen int, refusal error) error {
	for _, missing := range []error{
		order.ErrSoldOut, order.ErrTooManyOpen, order.ErrPurchaseLimit, order.ErrUnknownSKU, order.ErrNotFound,
		order.ErrNoPayment, order.ErrNothing,
	} {
		if errors.Is(refusal, missing) {
			if err := s.unconfirmed(ctx, seen); err != nil {
				return err
			}
		}
	}
	return refusal
}

// unconfirmed returns an order.ErrBusy if the reads since changes returned seen may come from a server that was
// replaced. A primary that was cut off from its group takes seconds to notice, and answers reads meanwhile. But it
// cannot commit, and isPlaced commits even if the order does not exist.
func (s *Store) unconfirmed(ctx context.Context, seen int) error {
	if s.group == nil {
		return nil
	}
	err := s.group.confirm(ctx, func(ctx context.Context) error {
		_, err := s.isPlaced(ctx, order.Order{Buyer: "confirm", Key: uuid.NewString(), ID: uuid.NewString()})
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: the last reads are not confirmed: %s", order.ErrBusy, err.Error())
	case s.changes() != seen:
		return fmt.Errorf("%w: another host has become the primary", order.ErrBusy)
	}
	return nil
}

// inTx runs fn in a transaction, and again after a deadlock. It runs fn once more if the server has
// ended the connection before the COMMIT, as it does if this process stands still. In a group, it also
// runs fn again, on another connection, if the primary has refused the transaction or was replaced.
// After a lost answer to a COMMIT: order.ErrUnknownOutcome.
func (s *Store) inTx(ctx context.Context, fn func(*tx) error) error {
	for try := 1; ; try++ {
		err := s.inTxOnce(ctx, fn)
		if isDiskFull(err) {
			s.full.Store(&diskFull{err, time.Now()})
		}
		if errors.Is(err, order.ErrUnknownOutcome) || isContext(err) || !unavailable(err) {
			return err
		}
		kind := classify(err)
		// A noPrimaryError has already waited, and a host that is out of reach may stay so.
		moved := s.group != nil && (kind == lost || kind == refused) && !errors.As(err, new(noPrimaryError))
		cut := s.group == nil && kind == lost && try == 1 && !errors.As(err, new(net.Error))
		switch {
		case kind != conflict && !moved && !cut:
			return fmt.Errorf("%w: %w", busy(err), err)
		case try == deadlockTries:
			return fmt.Errorf("%w: %d attempts: %w", busy(err), try, err)
		}
		pause := rand.N(min(2*time.Millisecond<<try, 100*time.Millisecond))
		if moved {
			pause += askEvery // until the hosts have been asked
		}
		if order.Pause(ctx, pause) != nil {
			return ended(ctx)
		}
	}
}

// inTxOnce is one attempt. Before the COMMIT begins, a failure, a panic or the end of ctx rolls the transaction back.
func (s *Store) inTxOnce(ctx context.Context, fn func(*tx) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, txTimeout, fmt.Errorf("%w: the transaction took longer than %v", order.ErrBusy, txTimeout))
	defer cancel()
	if err := s.checkFile(); err != nil {
		return err
	}
	conn := s.conn
	if conn == nil {
		conn, err = s.pool.Conn(ctx)
	}
	if err != nil {
		return withCause(ctx, fmt.Errorf("connection: %w", err))
	}
	begun, err := conn.BeginTx(ctx, nil)
	if err != nil {
		nothing := func() error { return nil }
		return withCause(ctx, errors.Join(fmt.Errorf("begin: %w", err), s.finish(conn, nothing, err)))
	}
	committing := false
	defer func() {
		if !committing {
			_ = s.finish(conn, begun.Rollback, err) // after an error, the server rolls back when the connection ends
		}
	}()

	t := &tx{store: s, db: s.db.Session(&gorm.Session{NewDB: true, Context: ctx})}
	t.db.Statement.ConnPool = begun
	if err := fn(t); err != nil {
		return withCause(ctx, err)
	}
	committing = true
	return s.commit(ctx, conn, begun)
}

// commit returns order.ErrUnknownOutcome for every error that is not known to mean a rollback. The errors 3100 and 3101
// of a group are among them: a member that leaves the group while a COMMIT waits reports that it has rolled back, but
// the others may have received and committed the transaction.
func (s *Store) commit(ctx context.Context, conn *sql.Conn, begun *sql.Tx) error {
	err := s.finish(conn, begun.Commit, nil)
	switch {
	case err == nil:
		return nil
	case isContext(err), errors.Is(err, sql.ErrTxDone): // ctx ended before the COMMIT was sent
		return withCause(ctx, err)
	case classify(err) == conflict, s.sqlite && isDiskFull(err): // SQLite writes what marks the commit last
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("%w: %w", order.ErrUnknownOutcome, err)
	}
}

// finish ends a transaction by COMMIT or ROLLBACK and returns its connection to the pool, unless it is
// the connection of On. It waits for commitTimeout at most, because neither takes a context. earlier is
// the error of the transaction so far.
func (s *Store) finish(conn *sql.Conn, end func() error, earlier error) error {
	done := make(chan error, 1)
	go func() {
		err := end()
		failed := err != nil && !errors.Is(err, sql.ErrTxDone)
		if failed || classify(earlier) == refused {
			drop(conn)
		}
		if conn != s.conn {
			_ = conn.Close() // after an error, the pool drops the connection
		}
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

// drop makes the pool close the connection. It is for a connection to a server that refuses work,
// because another server may have taken over the address; and for a connection whose transaction may be
// open, because the next BEGIN would commit it.
func drop(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// tx is one attempt of a transaction, an order.Tx.
type tx struct {
	store    *Store
	db       *gorm.DB
	inserted []order.Order
}

// failed adds the purpose of the statement to an error of the database. It keeps the kind of the error,
// such as a deadlock.
func failed(err error, format string, args ...any) error {
	if err == nil || isDomain(err) {
		return err
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// fault is the kind of a database error, by its effect on the transaction.
type fault string

const (
	other       fault = "other"       // a wrong statement, a violated constraint, or no error of the database
	duplicate   fault = "duplicate"   // a row with this key exists; the transaction is still open
	conflict    fault = "conflict"    // a deadlock, or a row that changed since it was read: run the transaction again
	interrupted fault = "interrupted" // the statement was stopped by the end of its context, an operator or the server

	// The connection is lost or cannot be opened. The server rolls its transaction back, unless the COMMIT was sent.
	lost fault = "lost"

	// The database gave up waiting for another transaction's lock. In MySQL, the transaction is STILL OPEN: a COMMIT
	// would save the changes of its earlier statements.
	lockWait fault = "lock wait"

	// The server is full, out of memory, read-only or no longer the primary. The connection is dropped, because another
	// server may have taken over.
	refused fault = "refused"
)

// readOnly are the errors of a read-only server or schema: ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE,
// ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, ER_OPEN_AS_READONLY, ER_INNODB_READ_ONLY, ER_INNODB_FORCED_RECOVERY,
// ER_SCHEMA_READ_ONLY.
var readOnly = []uint16{1290, 1836, 1792, 1036, 1874, 1881, 3906} //nolint:gochecknoglobals // a table

// busy returns the order.ErrBusy for a temporary error. Even "read-only" may end, if another server gets the address.
func busy(err error) error {
	switch {
	case slices.Contains(readOnly, mysqlNumber(err)):
		return &order.Error{Code: order.ErrBusy.Code,
			Text: "the database server is read-only: name the one that takes writes, or make it writable"}
	case classify(err) == lockWait:
		return order.ErrLocked
	}
	return order.ErrBusy
}

// mysqlFault maps the error numbers of MySQL and MariaDB.
func mysqlFault(number uint16) fault {
	if slices.Contains(readOnly, number) {
		return refused
	}
	switch number {
	case 1062, 1586: // ER_DUP_ENTRY, ER_DUP_ENTRY_WITH_KEY_NAME
		return duplicate
	case 1213, // ER_LOCK_DEADLOCK
		1020: // ER_CHECKREAD: in MariaDB from 11.6 on, the row has changed since the snapshot
		return conflict
	case 1205, 3572: // ER_LOCK_WAIT_TIMEOUT, ER_LOCK_NOWAIT
		return lockWait
	case 1021, 1114, // ER_DISK_FULL, ER_RECORD_FILE_FULL
		1037, 1038, 1041, 1135, // ER_OUTOFMEMORY, ER_OUT_OF_SORTMEMORY, ER_OUT_OF_RESOURCES, ER_CANT_CREATE_THREAD
		1206, 1226, 1637, // ER_LOCK_TABLE_FULL, ER_USER_LIMIT_REACHED, ER_TOO_MANY_CONCURRENT_TRXS
		// Group replication: ER_RUN_HOOK_ERROR, ER_TRANSACTION_ROLLBACK_DURING_COMMIT, and, if a new primary was not ready
		// in time, ER_GRP_TRX_CONSISTENCY_*.
		3100, 3101, 3796, 3797, 3798,
		3032: // ER_SERVER_OFFLINE_MODE
		return refused
	case 1040, 1203, // ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS
		1053,                   // ER_SERVER_SHUTDOWN
		1158, 1159, 1160, 1161, // ER_NET_READ_ERROR and similar: the server lost its connection
		1927, 3169, 4031: // ER_CONNECTION_KILLED, ER_SESSION_WAS_KILLED, ER_CLIENT_INTERACTION_TIMEOUT
		return lost
	case 1317, 1969, 3024: // ER_QUERY_INTERRUPTED, ER_STATEMENT_TIMEOUT, ER_QUERY_TIMEOUT
		return interrupted
	}
	return other
}

// classify returns the kind of an error, which may be wrapped; empty for nil.
func classify(err error) fault {
	if err == nil {
		return ""
	}
	if number := mysqlNumber(err); number != 0 {
		return mysqlFault(number)
	}
	if local, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteFault(local.Code())
	}
	var network net.Error
	if errors.As(err, new(noPrimaryError)) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &network) && !isContext(err) { // context.DeadlineExceeded is also a net.Error
		return lost
	}
	return other
}

// mysqlNumber returns the number of a server's error, or 0.
func mysqlNumber(err error) uint16 {
	if answer, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return answer.Number
	}
	return 0
}

// sqliteFault uses the primary code, the lowest byte, except for constraints, which the second byte distinguishes.
func sqliteFault(code int) fault {
	if code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || code == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return duplicate
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return conflict
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM:
		return refused
	case sqlite3.SQLITE_INTERRUPT:
		return interrupted
	}
	return other
}

// isDiskFull reports whether the disk of the database is full.
func isDiskFull(err error) bool {
	local, ok := errors.AsType[*sqlite.Error](err)
	return ok && local.Code()&0xff == sqlite3.SQLITE_FULL || slices.Contains([]uint16{1021, 1114}, mysqlNumber(err))
}

// unavailable reports whether the database cannot answer now but may answer later.
func unavailable(err error) bool {
	return slices.Contains([]fault{lost, refused, conflict, lockWait, interrupted}, classify(err))
}

// explain turns an error of the database into order.ErrBusy if the database may answer later, or into the reason why
// ctx ended. It returns errors of the packages order and stock as they are.
func explain(ctx context.Context, what string, err error) error {
	if err == nil || isDomain(err) {
		return err
	}
	err = withCause(ctx, err)
	if !isContext(err) && unavailable(err) {
		return fmt.Errorf("%w: %s: %w", busy(err), what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isDomain reports whether err is an error of the packages order and stock.
func isDomain(err error) bool { return order.Code(err) != "" || errors.Is(err, stock.ErrInvalid) }

// withCause adds the reason why ctx ended to an error that the end of ctx may have caused: the drivers' "interrupted"
// and "invalid connection", and sql.ErrTxDone.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if f := classify(err); f == interrupted || f == lost || isContext(err) || errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("%w: %w", ended(ctx), err)
	}
	return err
}

// ended returns the reason why ctx ended: its error and, if it differs, its cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
