// Package mysqllock keeps leases in a table of MySQL 8 or later or MariaDB 10.11 or later, for shops that have that
// database already and do not want to run another server.
//
//	leases := mysqllock.New(db)
//	if err := leases.CreateTable(ctx); err != nil { ... } // or schema.sql in a migration
//	locker := lock.New(leases, lock.Options{})
//
// # How it works
//
// Each key has a row in the table locks: owner, deadline, fence. A key is taken in a short transaction: SELECT ... FOR
// UPDATE NOWAIT of the row, a check whether it is free, has run out, or is the caller's own, UPDATE, COMMIT. A renewal
// is the same, and a release is one UPDATE, on the condition that the owner still holds the key. If another transaction
// has locked the row, the key counts as held: no server thread waits for the row to take or renew it. A missing row is inserted before the
// transaction, as a free one. No connection is kept while a lease is held.
//
// The transaction is READ COMMITTED, set for this transaction only. At REPEATABLE READ, the SELECT of a key without a
// row would lock the gap into which other keys are inserted, and two such transactions would wait for each other.
//
// # What is promised
//
//   - The deadline is judged by the database's clock (UTC_TIMESTAMP). A client sends only durations.
//   - The fence is max(last + 1, the database's time in microseconds), minted with the lease. It rises also if the row
//     or the table was lost. After a lease that ran out, it leaves out as many numbers as the holder may have used for
//     hand-offs. Renewals and releases record in the row which number is in use.
//   - Asking again finds the caller's own lease. Owners and keys are compared byte by byte and whole.
//   - Deadlocks and changed rows (1213, 1020) and rows that another transaction has (3572, 1205) are rolled back and
//     tried again, a few times, after a random pause. So a lease is taken as a whole or not at all; if the answer to
//     the COMMIT is lost, asking again or a release settles it.
//   - Nothing is changed in the sessions of the caller's pool.
//
// # What is not
//
// It polls. A waiter reads the row, by a plain SELECT that locks nothing, after 5 ms and then less and less often, up
// to 100 ms, with jitter, and sooner if the lease has run out. Waiters have no order: a process that takes a hot key
// again at once tends to win. Each acquisition and each release is a durable commit.
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
// # The pool
//
// Any *sql.DB of github.com/go-sql-driver/mysql will do whose sessions commit by themselves (autocommit, the default).
// A pool that the shop's own transactions have used up delays renewals, so give the locks a pool of their own if in
// doubt. interpolateParams=true in the DSN halves the round trips.
//
// A client that disappears without closing the connection, in the middle of a transaction, keeps the row locked until
// the server ends that connection: after the session's wait_timeout, 8 hours by default. So give the sessions of the
// locks a short one, such as ?wait_timeout=30 in the DSN, and the pool a SetConnMaxIdleTime below it. The driver's
// COMMIT and ROLLBACK take no contexts: set readTimeout and writeTimeout in the DSN to more than the time limit of a
// request (a third of the TTL, or a second if that is longer). Statement-based replication cannot replicate READ COMMITTED.
//
// The sources: MySQL Reference Manual, "InnoDB Locking" and "Transaction Isolation Levels"; for the fence's clock,
// hybrid logical clocks (Kulkarni et al., 2014).
package mysqllock
