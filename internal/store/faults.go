package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

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
	if errors.As(err, new(noPrimaryError)) || isNotPrimary(err) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
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
