// Package mysqllock keeps leases in a table of MySQL or MariaDB (tested with 9 and
// 10.11), for shops whose orders are in that database already, and who would rather
// not run another server.
//
//	leases := mysqllock.New(db, mysqllock.Options{})
//	if err := leases.CreateTable(ctx); err != nil { ... } // or schema.sql in a migration
//	locker := lock.New(leases, lock.Options{})
//
// # How it works
//
// Each key has a row: owner, deadline, fence. A key is taken in a short
// transaction: SELECT ... FOR UPDATE of the row, a look whether it is free, has
// run out, or is one's own, UPDATE, COMMIT. A renewal is the same, and a release is
// one UPDATE, on the condition that the owner still holds the key. Nobody has to
// clean up after a holder that crashed: whoever comes next finds that the deadline
// has passed. No lock of the database outlives these transactions (but see below for
// a host that vanishes within one), and no connection is kept while a lease is held.
//
// The transaction is READ COMMITTED, set for itself alone. At REPEATABLE READ, the
// look at a key that has no row yet would lock the gap in which other keys are to
// be inserted, and two such transactions wait for each other. A missing row is
// inserted outside of it, as a free one, by INSERT IGNORE.
//
// # What is promised
//
//   - The deadline is judged by the database's clock (UTC_TIMESTAMP). Durations
//     are all that a client sends.
//   - The fence is max(last + 1, the database's time in microseconds), minted with
//     the lease. It rises also if the row or the table was lost. After a holder
//     that ran out and did not tell how many hand-offs it numbered, it leaves out
//     as many as there can be.
//   - Renewals tell the row which fence is in use, and so do releases.
//   - Asking again finds one's own lease. Owners and keys are compared byte by
//     byte and whole.
//   - Deadlocks and changed rows (1213, 1020) and waits for a row that take too
//     long (1205) are rolled back and tried again, a few times, after a random
//     pause. So a lease is taken as a whole or not at all; if the answer to the
//     COMMIT is lost, asking again or a release settles it.
//   - Nothing is changed in the sessions of the caller's pool.
//
// # What is not
//
// It polls. A waiter looks at the row, by a plain SELECT that locks nothing, after
// Options.PollMin and then less and less often, up to Options.PollMax, with
// jitter, and sooner if the holder's time is over. Nobody stands in line: a process
// that takes a hot key again at once tends to win. Each acquisition costs a
// transaction with a durable commit; each release another. Where thousands of
// leases a second matter, take Redis.
//
// A lease is not exclusion: see package lock. Compare Lease.Fence in the same
// transaction as the write. Do not hold locks on rows of this table in
// transactions of your own.
//
// A transaction whose client vanishes without a word (its host loses power, the
// network is cut) keeps the row locked, whatever the TTL: who asks for the key gets
// no answer until the server ends that connection, after the session's wait_timeout,
// 8 hours by default, or when TCP keepalive of the server's host gives it up. (A
// process that dies on a host that lives is noticed at once.) So give the sessions of
// the locks a short one, such as ?wait_timeout=30 in the DSN, and the pool a
// SetConnMaxIdleTime below it. Pools that package store opens have 90 s,
// unless the DSN says otherwise.
//
// A failover to a replica that lags can forget a lease, and a clock that jumps
// ahead ends leases early; the fence covers both, if the clock does not fall back
// by more than the time since the last lease.
//
// # Old rows
//
// The row of a free key is kept for its fence and its count. At most once a minute,
// after a release, a process looks at the next 500 rows by name, without locking
// them, and deletes those that have been free for Options.Keep: one bounded step,
// in the background; see Backend.Sweep. A row whose fence is ahead of the clock
// stays, so that what is minted for the key later is higher also without the row.
//
// # The pool
//
// Any *sql.DB of github.com/go-sql-driver/mysql will do whose sessions commit by
// themselves (autocommit, the default). An acquisition takes one connection for a
// moment: a pool that the shop's own transactions have used up delays renewals, so
// give the locks a pool of their own if in doubt. interpolateParams=true in the DSN
// halves the round trips. The driver's COMMIT and ROLLBACK know no contexts: one
// without an answer is left behind at the deadline, and keeps a goroutine and its
// connection of the pool until TCP gives up. Set readTimeout and writeTimeout in the
// DSN, longer than an answer is waited for (a third of the TTL, or a second if that
// is longer), so that they end earlier; pools of package store have 2 min and 30 s.
// Statement-based replication (binlog_format=STATEMENT)
// cannot replicate READ COMMITTED.
//
// # Sources
//
// SELECT ... FOR UPDATE, gap locks and the isolation levels: MySQL Reference Manual,
// "InnoDB Locking" and "Transaction Isolation Levels". The need for fences: Martin Kleppmann, "How to do distributed
// locking" (2016). The fence's clock: hybrid logical clocks (Kulkarni et al., 2014).
package mysqllock
