package store

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"
	sqlite3 "modernc.org/sqlite/lib"
)

// Fault is what an error of the database means to whoever has to go on.
type Fault string

// What can go wrong, as far as it makes a difference.
const (
	// None is no error.
	None Fault = ""
	// Other is everything else: a wrong statement, a broken constraint, an error
	// that does not come from the database at all.
	Other Fault = "other"
	// Duplicate is a second row with the same key. The statement changed nothing;
	// the transaction is still open.
	Duplicate Fault = "duplicate"
	// Conflict is a deadlock, or a row that changed since it was read: the whole
	// transaction is to be run again.
	Conflict Fault = "conflict"
	// LockWait is the end of the database's patience with somebody else's lock.
	// In MySQL the transaction is STILL OPEN: a COMMIT would save what its earlier
	// statements did.
	LockWait Fault = "lock wait"
	// Lost is a connection that is gone or cannot be had. A transaction on it is
	// rolled back by the server, unless its COMMIT was sent.
	Lost Fault = "lost"
	// Interrupted is a statement that was stopped, as a rule because its context
	// ended.
	Interrupted Fault = "interrupted"
)

// mysqlFault tells what an error number of MySQL or MariaDB means.
func mysqlFault(number uint16) Fault {
	switch number {
	case 1062, // ER_DUP_ENTRY
		1586: // ER_DUP_ENTRY_WITH_KEY_NAME
		return Duplicate
	case 1213, // ER_LOCK_DEADLOCK
		1020, // ER_CHECKREAD: MariaDB from 11.6 on, where the row changed since the snapshot
		3101: // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: group replication certified another one
		return Conflict
	case 1205: // ER_LOCK_WAIT_TIMEOUT
		return LockWait
	case 1317, // ER_QUERY_INTERRUPTED
		1969, // ER_STATEMENT_TIMEOUT (MariaDB)
		3024: // ER_QUERY_TIMEOUT (MySQL)
		return Interrupted
	case 1040, // ER_CON_COUNT_ERROR: too many connections
		1203, // ER_TOO_MANY_USER_CONNECTIONS
		1053, // ER_SERVER_SHUTDOWN
		1927, // ER_CONNECTION_KILLED (MariaDB)
		3169, // ER_SESSION_WAS_KILLED (MySQL)
		4031: // ER_CLIENT_INTERACTION_TIMEOUT
		return Lost
	}
	return Other
}

// Classify tells what err means. It looks through wrapped errors.
func Classify(err error) Fault {
	if err == nil {
		return None
	}
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return mysqlFault(answer.Number)
	}
	var local *sqlite.Error
	if errors.As(err, &local) {
		return sqliteFault(local.Code())
	}
	var network net.Error
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isNetwork(err, &network) {
		return Lost
	}
	return Other
}

// Unavailable reports whether err means that the database cannot answer now and
// may do so later.
func Unavailable(err error) bool {
	fault := Classify(err)
	return fault == Lost || fault == Conflict || fault == LockWait
}

// isNetwork leaves out a context's own error, which has the same methods.
func isNetwork(err error, target *net.Error) bool {
	return errors.As(err, target) && !isContext(err)
}

// sqliteFault looks at the primary code, the lowest byte, except for
// constraints, which differ in the second byte.
func sqliteFault(code int) Fault {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE:
		return Duplicate
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return Conflict
	case sqlite3.SQLITE_INTERRUPT:
		return Interrupted
	}
	return Other
}
