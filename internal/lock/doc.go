// Package lock gives one process at a time the right to act on a key, by leases
// in a shared store.
//
//	locker := lock.New(lock.NewRedis(client), lock.Options{TTL: 10 * time.Second})
//	err := locker.Do(ctx, "sku:42", func(ctx context.Context, lease *lock.Lease) error {
//		// ctx is cancelled, with a cause, the moment the lease can no longer be trusted
//		return sell(ctx, lease.Fence())
//	})
//
// A Locker does everything that is the same for all stores; a Backend is the
// store: Redis, or Memory for one process and for tests. To use the package in
// another module, copy its .go and .lua files; go-redis is all they need.
//
// # What is promised
//
// Each of these is a test in package locktest, or beside the backend.
//
//   - A lease is trusted from before its request was sent until TTL minus
//     Margin, on the monotonic clock. A timer ends its context then, and no
//     request to the store can delay that.
//   - While it is held, a lease is renewed every third of its TTL; never after
//     its release, and never in a way that takes a key that has run out.
//   - Asking again after a lost reply finds one's own lease. Owners are random,
//     one for each acquisition, and compared whole.
//   - A caller that gives up leaves nothing behind: what the store may have
//     granted is given back in the background, after the answer has come.
//   - A lease ends as soon as a store that notices by itself tells that it is
//     gone.
//   - Release compares the owner and frees the key in one step. It works
//     whatever became of any context, and tells if the lease was lost.
//   - Only durations go to the store, never a client's time.
//   - One who waits is woken by the release, not by polling, and at most one
//     process is woken by each. A lost call delays until the holder's time would
//     have run out; it never hangs.
//   - In one process callers stand in line, first come first served, and only
//     the first asks the store. A freed lease is handed to the next without a
//     round trip, a bounded number of times and for a bounded time.
//   - A key that is held can be taken again, under the lease's context or with
//     the owner's id of WithOwner; the last release frees it.
//   - AcquireAll takes several keys, all or none, in sorted order.
//   - Each lease has a fence, higher than that of every earlier lease on its key,
//     also after a hand-off, a crash, FLUSHALL, or a restart without persistence.
//     It may be lower in two cases: the store lost its memory and its clock
//     stepped back; or, in Redis, which remembers a key for a minute after its
//     lease, its clock stepped back by more than a minute and the key was idle for
//     as long. Then a database that has seen a higher one refuses, and Lease.Raise
//     gets over it.
//
// # What is not
//
// A lease is not exclusion. A process can be paused between its last look at the
// clock and its write: by the scheduler, the garbage collector, or a laptop's
// lid, which stops the monotonic clock too. Or the store's clock leaps ahead, and
// takes the lease for over. The process then acts while somebody else holds the
// key, and no lock service can prevent that. What does is the fence,
// compared by the database in the same transaction as the write:
//
//	UPDATE stock SET available = available - ?, fence = ?
//	 WHERE sku = ? AND available >= ? AND fence < ?
//
// Release only after the commit: released before, the next holder reads what is
// about to change.
//
// What a client of Redis gave up without an answer may still be on its way, and
// arrive after the release that was to undo it. A free key is then held by nobody,
// for one TTL at most; or nobody stands in line, and is called once in vain.
//
// Redis replicates asynchronously. After a failover the new primary may not know
// of a lease, and grant the key again while its first holder still trusts it.
// The fence covers that as well, and Raise a new primary whose clock is behind.
//
// Waiters of several processes are served in the order in which they came, as
// far as all goes well; after a crash or a lost connection the order may differ.
//
// # Sources
//
// The need for fences: Martin Kleppmann, "How to do distributed locking" (2016).
// Acquire and release by owner: the Redis documentation, "Distributed Locks with
// Redis". The fence's clock: hybrid logical clocks (Kulkarni et al., 2014), in
// which a number is the larger of the clock and one more than the last.
package lock
