// Package mysqllock keeps leases in a table of MySQL 8 or later or MariaDB 10.11 or later, for shops that already have this
// database and do not want to run another server.
//
//	leases := mysqllock.New(db)
//	if err := leases.CreateTable(ctx); err != nil { ... } // or schema.sql in a migration
//	locker := lock.New(leases, lock.Options{})
//
// # How it works
//
// Each key has a row in the table locks, with owner, deadline and fence. A successful request is one statement: an
// UPDATE of the row, if the key is free, has run out, or is the caller's own. The fence comes back with the answer, by
// LAST_INSERT_ID. If the UPDATE of an acquisition matches no row, a SELECT reads the holder's remaining time; a missing
// row is inserted as a free row. A held lease keeps no connection.
//
// If another transaction has locked the row, the key counts as held: taking or renewing a lease never waits for the row.
//
// # Promises
//
//   - The clock of the database (UTC_TIMESTAMP) judges the deadline. A client sends only durations.
//   - The fence is max(last + 1, the database's time in microseconds), minted with the lease. It rises even if the row
//     or the table was lost. After a lease that ran out, it skips as many numbers as the holder may have used for
//     hand-offs. Renewals and releases record the number in use in the row.
//   - A repeated request finds its own lease. Owners and keys are compared byte by byte and whole.
//   - After a deadlock or a changed row (1213, 1020), or if another transaction has locked the row (3572, 1205), the
//     statement is repeated, a few times, after a random pause. If the answer to a request is lost, a repeated request
//     or a release settles it.
//   - Nothing changes in the sessions of the caller's pool, except the value of LAST_INSERT_ID().
//
// # Limits
//
// Waiters poll. A waiter reads the row, by a plain SELECT without locks, after 5 ms and then less and less often, up to
// every 100 ms, and sooner if the lease has run out. Waiters have no order: a process that takes a hot key again at
// once tends to win. Each acquisition and each release is a durable commit.
//
// A lease is not exclusion: see package lock. Compare Lease.Fence in the transaction of the write, and do not lock rows of
// this table in your own transactions. A failover to a lagging replica can forget a lease, and a clock that jumps ahead
// ends leases early. The fence covers both, unless the clock falls back by more than the time since the last lease.
//
// The row of a free key stays, for its fence. If there are many keys, a daily job can delete the rows that have been
// free for a day. Run it in READ COMMITTED, or the statement locks all rows that it reads, even the rows of leases.
// Repeat the statement until it deletes no row:
//
//	DELETE FROM locks
//	 WHERE deadline < UTC_TIMESTAMP(6) - INTERVAL 1 DAY
//	   AND fence < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 86400000000 LIMIT 1000
//
// # Several servers
//
// All processes must write to the same server; in Group Replication's single-primary mode, to the primary. If several
// servers take writes (multi-primary mode, Galera), each server judges deadlines by its own clock, and row locks do not
// reach the other servers: two servers can grant the same key.
//
// # The pool
//
// Use any *sql.DB of github.com/go-sql-driver/mysql with autocommit, the default. If the shop's own transactions use up
// the pool, renewals are delayed. If in doubt, give the locks a pool of their own. interpolateParams=true in the DSN
// halves the round trips.
//
// The user needs SELECT, INSERT and UPDATE on the table, and CREATE for CreateTable. The daily job needs DELETE. The table
// must have no triggers: a trigger loses the LAST_INSERT_ID, and with it the fence. Statement-based replication is unsafe
// with NOWAIT: set binlog_format to ROW or MIXED.
//
// Sources: MySQL Reference Manual, "Locking Reads" and "Information Functions"; for the fence's clock, hybrid logical
// clocks (Kulkarni et al., 2014).
package mysqllock
