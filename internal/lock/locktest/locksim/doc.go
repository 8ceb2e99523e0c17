// Package locksim runs Lockers against a store and a network that fail, in virtual time.
//
//	go test ./internal/lock/locktest/locksim                      # the first 300 seeds
//	go test ./internal/lock/locktest/locksim -seeds=10000         # more
//	go test ./internal/lock/locktest/locksim -run 'TestSim$' -seed=17 -v   # one, with its log
//
// A seed stands for a plan: some processes with Options of their own, workers that take turns under the lock, and a row of
// the table of fault profiles in plan.go. Messages are slow, lost, or arrive twice; processes are cut off, crash, or close
// their Lockers; the store loses its memory, or its clock steps. After a while the faults end, and every waiter has to be
// served. All of it runs in a bubble of testing/synctest: a minute takes milliseconds.
//
// The Lockers are those of package lock, and the store is its Memory, with a clock that can be set. The other stores are
// checked by package locktest.
//
// # What is checked
//
//   - Of all leases on a key, one at a time is trusted, and fences rise (package history). Leases on both sides of an instant
//     at which the store lost its memory or its clock leapt ahead may overlap: package lock does not promise otherwise.
//   - A lease is trusted until the end that the store's answers allow, to the nanosecond, whatever hangs.
//   - No renewal is sent once a key was given back; nothing is given back before the answer to its request has come; no
//     request is sent under an owner that was given back, twice at once, or again without a notification or its time having
//     come.
//   - Acquire returns at the instant at which its context ends, its MaxWait is over, or the Locker is closed, with the
//     errors that say so.
//   - Release takes a bounded time, returns the same twice, and frees a key only after the last of the leases that were
//     taken under each other.
//   - Waiters of a process are served in the order in which they came, and hand-offs have their bounds.
//   - Without faults no lease is lost, and no key is free for long while a worker waits for it. After the faults every
//     waiter is served, in a time that is bounded by the TTLs.
//   - When all Lockers are closed no key is held and no queue is left in the store: at once where every message arrived,
//     else after the TTLs. No goroutine is left: that would be a deadlock of the bubble.
//
// # What a seed repeats
//
// Each decision draws from the seed and a name of its own, so that it does not matter which goroutine draws first. Still,
// which of two events at one instant is first is up to Go's scheduler. About three seeds in ten put events at the same
// instants on purpose: one that fails may need several attempts (-count=100) to fail again.
//
// # What is not found
//
// A pause of a process between two instructions: virtual time passes only while all goroutines wait. What drivers do, the
// scripts of Redis and its notifications: package lock has tests with real servers for these.
package locksim
