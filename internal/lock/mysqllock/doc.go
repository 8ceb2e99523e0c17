// Package mysqllock keeps leases in a table of MySQL 8 or later or MariaDB 10.11 or later, for shops that have that
// database already and do not want to run another server.
//
//	leases := mysqllock.New(db)
//	if err := leases.CreateTable(ctx); err != nil { ... } // or schema.sql in a migration
//	locker := lock.New(leases, lock.Options{})
//
// # How it works
//
// Each key has a row in the table locks: owner, deadline, fence. Each request that succeeds is one statement, an
// UPDATE of the row, on the condition that the key is free, has run out, or is the caller's own. The fence comes back
// with the answer, by LAST_INSERT_ID. If the UPDATE of an acquisition matches no row, a SELECT reads for how long the
// key is still held, and a row that is missing is inserted as a free one. No connection is kept while a lease is
// held.
//
// If another transaction has locked the row, the key counts as held: no server thread waits for the row to take or renew
// it.
//
// # What is promised
//
//   - The deadline is judged by the database's clock (UTC_TIMESTAMP). A client sends only durations.
//   - The fence is max(last + 1, the database's time in microseconds), minted with the lease. It rises also if the row
//     or the table was lost. After a lease that ran out, it leaves out as many numbers as the holder may have used for
//     hand-offs. Renewals and releases record in the row which number is in use.
//   - Asking again finds the caller's own lease. Owners and keys are compared byte by byte and whole.
//   - Deadlocks and changed rows (1213, 1020) and rows that another transaction has (3572, 1205) are tried again, a few
//     times, after a random pause. If the answer to a request is lost, asking again or a release settles it.
//   - Nothing is changed in the sessions of the caller's pool, except the value of LAST_INSERT_ID().
//
// # What is not
//
// It polls. A waiter reads the row, by a plain SELECT that locks nothing, after 5 ms and then less and less often, up
// to 100 ms, and sooner if the lease has run out. Waiters have no order: a process that takes a hot key again at once tends
// to win. Each acquisition and each release is a durable commit.
//
// A lease is not exclusion: see package lock. Compare Lease.Fence in the same transaction as the write, and do not hold
// locks on rows of this table in transactions of your own. A failover to a replica that lags can forget a lease, and a
// clock that jumps ahead ends leases early; the fence covers both, if the clock does not fall back by more than the
// time since the last lease.
//
// The row of a free key stays, for its fence. Where keys are many, a daily job can delete those that have been free for
// a day, in READ COMMITTED: else the statement keeps all rows locked that it reads, those of leases too. Again until it
// finds none:
//
//	DELETE FROM locks
//	 WHERE deadline < UTC_TIMESTAMP(6) - INTERVAL 1 DAY
//	   AND fence < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 86400000000 LIMIT 1000
//
// # Several servers
//
// All processes have to write to the same server; in Group Replication's single-primary mode, to the primary. Where several
// servers take writes (multi-primary mode, Galera), each judges deadlines by its own clock, and row locks do not reach the
// others: two servers can grant the same key.
//
// # The pool
//
// Any *sql.DB of github.com/go-sql-driver/mysql will do whose sessions commit by themselves (autocommit, the default).
// A pool that the shop's own transactions have used up delays renewals, so give the locks a pool of their own if in
// doubt. interpolateParams=true in the DSN halves the round trips.
//
// The user needs SELECT, INSERT and UPDATE on the table, and CREATE for CreateTable. The daily job needs DELETE. The table
// must have no triggers: a trigger loses the LAST_INSERT_ID, and with it the fence. Statement-based replication is unsafe
// with NOWAIT: set binlog_format to ROW or MIXED.
//
// The sources: MySQL Reference Manual, "Locking Reads" and "Information Functions"; for the fence's clock, hybrid logical
// clocks (Kulkarni et al., 2014).
package mysqllock
