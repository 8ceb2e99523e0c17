// Package lock gives one process at a time the right to act on a key, by leases in a shared store.
//
//	locker := lock.New(lock.NewRedis(client), lock.Options{TTL: 10 * time.Second})
//	err := locker.Do(ctx, "sku:42", func(ctx context.Context, lease *lock.Lease) error {
//		// ctx is cancelled, with a cause, the moment the lease can no longer be trusted
//		return sell(ctx, lease.Fence())
//	})
//
// A Locker does everything that is the same for all stores. A Backend is the store: Redis, or Memory for one process and
// for tests. To use the package in another module, copy its .go and .lua files without the tests. They need only go-redis.
//
// # How a caller gets a key
//
//	Acquire ── holds it already? ── another lease on it, at once
//	   │
//	   ├── the process holds the key or asks for it ── wait in the
//	   │                                   queue for the turn ──┐
//	   └── else ──► ASK the store ◄──────── turn to ask ────────┤
//	                  │  granted: a tenure begins               │
//	                  │  held elsewhere: Backend.Wait, ask again│
//	                  └─ error, or the caller gave up: the next in the queue asks
//
//	HELD (a tenure) ─ Release ─► hand-off to the next in the queue ──► HELD, next fence
//	   │                  └────► back to the store, and the next in the queue asks
//	   └─ deadline, ErrLost, Close ─► the lease's context ends, the key is given back in the
//	                                  background, the next in the queue asks
//
// A renewal, every third of the TTL, moves the deadline of a tenure. The steps up to the grant are in acquire.go, and the
// steps after it in tenure.go and lease.go.
//
// # Promises
//
// Each promise has a test in package locktest, in its simulation, or beside the backend. If a backend other than Redis and
// Memory differs, its doc.go says so.
//
//   - A lease is trusted from before its request was sent until TTL minus Margin, on the monotonic clock. Then a timer ends
//     its context, and no request to the store can delay that.
//   - A lease is never renewed after its release, and a renewal never takes a key whose lease has run out. The lease is
//     renewed until all contexts under which it is held have ended, once more then, and not longer than Options.MaxHold.
//   - A request that is repeated after a lost reply finds its own lease. Owners are random, one for each acquisition,
//     and are compared whole.
//   - A caller that gives up leaves nothing behind. A lease that the store may have granted is released in the background,
//     after the answer has come. The caller returns at once or, if it is cancelled during a request, when the request has
//     ended, at its deadline at the latest.
//   - Release compares the owner and frees the key in one step. It works even after the end of any context, and reports
//     a lost lease. Renewals and releases do not wait behind acquisitions that the store does not answer.
//   - Only durations go to the store, never a client's time.
//   - The release wakes a waiter, which does not poll. Each release wakes at most one process. A lost message, or a
//     store that lost its data, delays a waiter by about a tenth of the TTL; a waiter never hangs.
//   - In one process, callers are served first come, first served, and one at a time asks the store. A freed lease is
//     handed to the next caller without a round trip, a bounded number of times and for a bounded time.
//   - Under the lease's context, any goroutine can take the held key again. The last release frees the key.
//   - AcquireAll asks for several keys at once, and waits for them in sorted order, all or none.
//   - Shutdown lets holders finish until its ctx ends, and then names the keys that are still held. Close does not wait for
//     holders.
//   - If the store fails, releases are repeated, one key at a time, until the TTL has passed.
//   - Holder names the holder of a key, by its Options.Identity. After ForceRelease, the next fence is higher than any
//     that the former holder can have used.
//   - A panic of the function given to Do blocks no key.
//   - Each lease has a fence that is higher than the fence of every earlier lease on its key, even after a hand-off, a
//     crash, FLUSHALL, or a restart without persistence. There are two exceptions. The store loses its data and its
//     clock steps back. Or the clock of Redis steps back by more than a minute while the key is idle for as long: Redis
//     remembers a key for a minute after its lease, and until its clock has passed the fence. If a database has already
//     accepted a higher fence, it then refuses the write, and Lease.Raise gets a higher fence.
//
// # Limits
//
// A lease is not exclusion. A process can be paused between its last check of the clock and its write, or the store's
// clock can step ahead. The process then acts while another process holds the key, and no lock service can prevent
// that. The fence prevents it, if the database compares the fence in the transaction of the write:
//
//	UPDATE stock SET available = available - ?, fence = ?
//	 WHERE sku = ? AND available >= ? AND fence < ?
//
// Release only after the commit: otherwise the next holder reads rows that are about to change.
//
// A request that the store's client gave up may still arrive after the releases that should undo it. The key is then
// blocked for one TTL. Redis replicates asynchronously: after a failover, the new primary may not know of a lease, and
// grant the key again while the first holder still trusts the lease. The fence also covers this case. After a crash or
// a lost connection, waiters of several processes may be served out of order.
//
// # Sources
//
// The need for fences: Martin Kleppmann, "How to do distributed locking" (2016). Acquire and release by owner: the
// Redis documentation, "Distributed Locks with Redis". The fence's clock: hybrid logical clocks (Kulkarni et al.,
// 2014), in which a number is the larger of the clock and the last number plus one.
package lock
