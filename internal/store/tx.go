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
			defer func() { inserted = t.inserted }()
			return fn(t)
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

// isPlaced finds out whether an unanswered COMMIT placed the order. A plain read is not enough: the COMMIT may be done
// after it. A transaction that writes the row of the order's key waits until the first one has ended; after that, the
// order exists or it does not. isPlaced tries again after a lost connection, or while the first transaction still holds
// its locks, and waits for a primary: it outlasts an election. Like the COMMIT, it ignores the cancellation of ctx.
func (s *Store) isPlaced(ctx context.Context, o order.Order) (placed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	other := *s
	other.conn = nil // it may be the lost connection
	for try := 1; ; try++ {
		if s.group != nil {
			s.group.await(ctx) // without one, Connect says why
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

// exists reports whether the order exists, if its error is nil, or order.ErrNothing: there is nothing to commit.
//
// A member of a group that was replaced as the primary may not know it yet, and roll a transaction back that the others
// have committed: to it, the key is free. So in a group the key is claimed and freed in a transaction that commits:
// only a primary with a majority can commit it, and only after the first one. That the order exists is read in the same
// transaction, since another connection may be to another member.
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

// changes returns how often another host has become the primary, for unconfirmed.
func (s *Store) changes() int {
	_, changes, _ := s.Primary()
	return changes
}

// confirm returns refusal. If that says that something is missing, and the server that said so may have been replaced since
// changes returned seen, confirm returns an order.ErrBusy instead. The end of an order is final: no server can be wrong about
// it.
func (s *Store) confirm(ctx context.Context, seen int, refusal error) error {
	for _, missing := range []error{
		order.ErrSoldOut, order.ErrTooManyOpen, order.ErrPurchaseLimit, order.ErrUnknownSKU, order.ErrNotFound, order.ErrNoPayment, order.ErrNothing,
	} {
		if errors.Is(refusal, missing) {
			if err := s.unconfirmed(ctx, seen); err != nil {
				return err
			}
		}
	}
	return refusal
}

// unconfirmed returns an order.ErrBusy if what was read since changes returned seen may have been read from a server that was
// replaced. A primary that was cut off from its group goes on answering reads for the seconds that it takes to notice. But
// it commits nothing, and isPlaced commits, even if the order does not exist.
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
		kind := classify(err)
		moved := s.group != nil && (kind == lost || kind == refused) && !errors.As(err, new(noPrimaryError)) // that one has waited
		switch {
		case kind != conflict && !moved:
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

// inTxOnce is one attempt. A failure, a panic or the end of ctx before the COMMIT begins rolls the transaction back.
func (s *Store) inTxOnce(ctx context.Context, fn func(*tx) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, txTimeout, fmt.Errorf("%w: transaction took longer than %v", order.ErrBusy, txTimeout))
	defer cancel()
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
			_ = s.finish(conn, begun.Rollback, err) // if it fails, the server rolls back when the connection ends
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

// commit returns order.ErrUnknownOutcome for every error that is not known to mean a rollback. That of a group, 3100 or
// 3101, is not: a member that left the group while the COMMIT waited rolls the transaction back and says so, and the
// others may have received and committed it.
func (s *Store) commit(ctx context.Context, conn *sql.Conn, begun *sql.Tx) error {
	err := s.finish(conn, begun.Commit, nil)
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

// finish ends a transaction by COMMIT or ROLLBACK and returns its connection to the pool, but for the one of On. It waits for commitTimeout at
// most, since neither takes a context. earlier is the error of the transaction so far.
func (s *Store) finish(conn *sql.Conn, end func() error, earlier error) error {
	done := make(chan error, 1)
	go func() {
		err := end()
		failed := err != nil && !errors.Is(err, sql.ErrTxDone)
		if failed || classify(earlier) == refused {
			drop(conn)
		}
		if conn != s.conn {
			_ = conn.Close() // its error is of a connection that the pool drops anyway
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

// drop makes the pool close the connection: to a server that refused to work, since another may have taken over its
// address; or whose transaction may still be open, since the next BEGIN would commit that.
func drop(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// tx is one attempt of a transaction, an order.Tx.
type tx struct {
	store    *Store
	db       *gorm.DB
	inserted []order.Order
}

// failed adds to an error of the database what the statement was for. Its kind, such as a deadlock, stays what it is.
func failed(err error, format string, args ...any) error {
	if err == nil || isDomain(err) {
		return err
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// fault is the kind of a database error: what it means for the transaction.
type fault string

const (
	none        fault = ""
	other       fault = "other"       // a wrong statement, a violated constraint, or no error of the database
	duplicate   fault = "duplicate"   // a row with this key exists; the transaction is still open
	conflict    fault = "conflict"    // a deadlock, or a row that changed since it was read: run the transaction again
	interrupted fault = "interrupted" // the statement was stopped: its context ended, or an operator or the server did it

	// The connection is gone or cannot be had. The server rolls a transaction on it back, unless its COMMIT was sent.
	lost fault = "lost"

	// The database gave up waiting for another transaction's lock. In MySQL the transaction is STILL OPEN: a COMMIT
	// would save what its earlier statements did.
	lockWait fault = "lock wait"

	// The server is full, out of memory, read-only or no longer the primary. Another server may have taken over, so the
	// connection is dropped.
	refused fault = "refused"
)

// readOnly are the errors of a server or a schema that takes no writes: ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE,
// ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, ER_OPEN_AS_READONLY, ER_INNODB_READ_ONLY, ER_INNODB_FORCED_RECOVERY,
// ER_SCHEMA_READ_ONLY.
var readOnly = []uint16{1290, 1836, 1792, 1036, 1874, 1881, 3906} //nolint:gochecknoglobals // a table

// busy returns the order.ErrBusy for an error that may pass. A server that takes writes may yet get the address.
func busy(err error) *order.Error {
	if slices.Contains(readOnly, mysqlNumber(err)) {
		return &order.Error{Code: order.ErrBusy.Code, Text: "the database server is read-only: name the one that takes writes, or make it writable"}
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
		1020: // ER_CHECKREAD: MariaDB from 11.6 on, where the row changed since the snapshot
		return conflict
	case 1205, 3572: // ER_LOCK_WAIT_TIMEOUT, ER_LOCK_NOWAIT
		return lockWait
	case 1021, 1114, // ER_DISK_FULL, ER_RECORD_FILE_FULL
		1037, 1038, 1041, 1135, // ER_OUTOFMEMORY, ER_OUT_OF_SORTMEMORY, ER_OUT_OF_RESOURCES, ER_CANT_CREATE_THREAD
		1206, 1226, 1637, // ER_LOCK_TABLE_FULL, ER_USER_LIMIT_REACHED, ER_TOO_MANY_CONCURRENT_TRXS
		// Group replication: ER_RUN_HOOK_ERROR, ER_TRANSACTION_ROLLBACK_DURING_COMMIT, and that a new primary was not
		// ready in time: ER_GRP_TRX_CONSISTENCY_*.
		3100, 3101, 3796, 3797, 3798,
		3032: // ER_SERVER_OFFLINE_MODE
		return refused
	case 1040, 1203, // ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS
		1053,                   // ER_SERVER_SHUTDOWN
		1158, 1159, 1160, 1161, // ER_NET_READ_ERROR and its like: the server itself was cut off
		1927, 3169, 4031: // ER_CONNECTION_KILLED, ER_SESSION_WAS_KILLED, ER_CLIENT_INTERACTION_TIMEOUT
		return lost
	case 1317, 1969, 3024: // ER_QUERY_INTERRUPTED, ER_STATEMENT_TIMEOUT, ER_QUERY_TIMEOUT
		return interrupted
	}
	return other
}

// classify returns the kind of an error, which may be wrapped.
func classify(err error) fault {
	if err == nil {
		return none
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

// sqliteFault uses the primary code, the lowest byte, except for constraints, which differ in the second byte.
func sqliteFault(code int) fault {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE:
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

// unavailable reports whether the database cannot answer now and may do so later.
func unavailable(err error) bool {
	return slices.Contains([]fault{lost, refused, conflict, lockWait, interrupted}, classify(err))
}

// explain turns an error of the database into order.ErrBusy if the database may answer later, or into the reason why
// ctx ended. Errors of packages order and stock stay what they are.
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

// isDomain reports whether err is one of packages order and stock.
func isDomain(err error) bool { return order.Code(err) != "" || errors.Is(err, stock.ErrInvalid) }

// withCause adds the reason why ctx ended to an error that its end may have caused: the drivers' "interrupted" and
// "invalid connection", and sql.ErrTxDone.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if f := classify(err); f == interrupted || f == lost || isContext(err) || errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("%w: %w", ended(ctx), err)
	}
	return err
}

// ended returns why ctx ended: its error, and its cause if that is another one.
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
