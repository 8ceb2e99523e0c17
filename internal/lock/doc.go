// Package lock gives one process at a time the right to act on a key, by leases in a shared store.
//
//	locker := lock.New(lock.NewRedis(client), lock.Options{TTL: 10 * time.Second})
//	err := locker.Do(ctx, "sku:42", func(ctx context.Context, lease *lock.Lease) error {
//		// ctx is cancelled, with a cause, the moment the lease can no longer be trusted
//		return sell(ctx, lease.Fence())
//	})
//
// A Locker does everything that is the same for all stores; a Backend is the store: Redis, or Memory for one process
// and for tests. To use the package in another module, copy its .go and .lua files but for the tests; go-redis is all they
// need.
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
// A renewal, every third of the TTL, moves the deadline of a tenure. Everything up to the grant is in acquire.go,
// everything after it in tenure.go and lease.go.
//
// # What is promised
//
// Each of these is a test in package locktest, in its simulation, or beside the backend. Where another backend than Redis and
// Memory differs, its doc.go says so.
//
//   - A lease is trusted from before its request was sent until TTL minus Margin, on the monotonic clock. A timer ends
//     its context then, and no request to the store can delay that.
//   - It is never renewed after its release, and never in a way that takes a key that has run out. It is renewed while one
//     of the contexts under which it is held has not ended, once more after that, and not longer than Options.MaxHold.
//   - A request that is repeated after a lost reply finds its own lease. Owners are random, one for each acquisition, and
//     compared whole.
//   - A caller that gives up leaves nothing behind: what the store may have granted is given back in the background,
//     after the answer has come. It returns at once, or, if it is cancelled during a request, when that has ended, at its
//     deadline at the latest.
//   - Release compares the owner and frees the key in one step. It works also after the end of any context, and reports if
//     the lease was lost. Renewals and releases do not wait behind acquisitions that the store does not answer.
//   - Only durations go to the store, never a client's time.
//   - A waiter is woken by the release, not by polling, and at most one process is woken by each. A lost message, or a
//     store that lost its memory, delays a waiter by a tenth of the TTL or so; it never hangs.
//   - In one process callers are served first come first served, and one at a time asks the store. A freed lease is
//     handed to the next without a round trip, a bounded number of times and for a bounded time.
//   - A key that is held can be taken again under the lease's context, by any goroutine; the last release frees it.
//   - AcquireAll asks for several keys at once, and waits for them in sorted order, all or none.
//   - Shutdown lets holders finish until its ctx ends, and names the keys that are held then; Close does not wait for them.
//   - What a failing store has not released is asked for again, one key at a time, until the TTL has passed.
//   - Holder names the holder of a key, by its Options.Identity. After ForceRelease the next fence is higher than any
//     that the former holder can have used.
//   - A panic of the function given to Do blocks no key.
//   - Each lease has a fence, higher than that of every earlier lease on its key, also after a hand-off, a crash,
//     FLUSHALL, or a restart without persistence. It may be lower in two cases: the store lost its memory and its clock
//     stepped back; or, in Redis, which remembers a key for a minute after its lease and until its clock has passed the
//     fence, the clock stepped back by more than a minute and the key was idle for as long. Then a database that has
//     accepted a higher one refuses the write, and Lease.Raise gets a higher one.
//
// # What is not
//
// A lease is not exclusion. A process can be paused between its last check of the clock and its write, or the store's
// clock can step ahead. The process then acts while another holds the key, and no lock service can prevent that. The
// fence does, if the database compares it in the same transaction as the write:
//
//	UPDATE stock SET available = available - ?, fence = ?
//	 WHERE sku = ? AND available >= ? AND fence < ?
//
// Release only after the commit: otherwise the next holder reads what is about to change.
//
// A request that the store's client gave up may still arrive after the releases that were to undo it: the key is blocked
// for one TTL. Redis replicates asynchronously. After a failover the new primary may not know of a lease, and grant the
// key again while its first holder still trusts it; the fence covers that as well. After a crash or a lost connection
// waiters of several processes may be served in another order than they came.
//
// # Sources
//
// The need for fences: Martin Kleppmann, "How to do distributed locking" (2016). Acquire and release by owner: the
// Redis documentation, "Distributed Locks with Redis". The fence's clock: hybrid logical clocks (Kulkarni et al.,
// 2014), in which a number is the larger of the clock and one more than the last.
package lock
