// Package locksim runs Lockers against a store and a network that go wrong, in
// virtual time.
//
//	go test ./internal/lock/locktest/locksim                      # the first 1,000 seeds; with -race, 200
//	go test ./internal/lock/locktest/locksim -seeds=10000         # more
//	go test ./internal/lock/locktest/locksim -run 'TestSim$' -seed=17 -v   # one, with its log
//
// A seed stands for a Plan: some processes with Options of their own, workers
// that take turns under the lock, and a kind of weather, which is a row of the
// table in weather.go. Messages are slow, lost, or arrive once more; processes
// are cut off, crash, or close their Lockers; the store loses its memory, and its
// clocks step. After a while the faults end, and whoever waits has to be served.
// All of it runs in a bubble of testing/synctest: a minute takes milliseconds.
//
// # Who is real
//
// The Lockers are those of package lock. The server is a model of the Redis
// scripts, with clocks that can be set: the one that mints fences, and the one
// by which leases run out. The stores themselves are checked by package locktest.
//
// # What is checked
//
//   - Of all leases on a key, one at a time is trusted, and fences rise (package
//     history). Not judged are leases on both sides of an instant at which the
//     store lost its memory or its expiry clock leapt ahead, and fences where it
//     lost its memory after its clock had stepped back: package lock promises
//     neither away.
//   - The guarded database takes no write of a lease that is older than one whose
//     write it took.
//   - A lease is trusted until the end that its answers allow, to the nanosecond,
//     and no longer than MaxHold, whatever hangs.
//   - No renewal is sent once a key was given back; nothing is given back before
//     the answer to its request has come; nobody asks under a name that was given
//     back, twice at once, or again without a call or its time having come.
//   - Acquire returns at the instant at which its context ends, its MaxWait is
//     over, or the Locker is closed, with the errors that say so.
//   - Release takes a bounded time, says the same twice, and frees a key only
//     after the last of the leases that were taken under each other.
//   - Waiters of a process are served in the order in which they came, and
//     hand-offs have their bounds.
//   - In calm weather no lease is lost, and no key is free for long while
//     somebody waits. After the faults everybody who waits is served, in a time
//     that is bounded by the TTLs.
//   - When all is closed nobody holds anything: at once where every message
//     arrived, else after the TTLs. No goroutine is left: that would be a deadlock
//     of the bubble.
//
// # What a seed repeats
//
// All chance comes from the seed, and is drawn for each decision by its name, so
// that it does not matter which goroutine draws first. Still, what comes first
// of two things at one instant is up to Go's scheduler. Plan.Repeats tells the
// seeds whose times are in nanoseconds, about seven in ten: of them, hardly one
// in a hundred runs has a log that differs from the last. The others put things
// at the same instants on purpose. One that fails may need several attempts
// (-count=100) to fail again; its log shows all that happened, in any case.
//
// # What is not found
//
// A pause of a process between two instructions: virtual time passes only while
// all goroutines wait. Two calls of Release at once: the second waits in a
// sync.Once, which stops the bubble's clock. What drivers do, Redis's own scripts
// and its notifications: package lock has tests with real servers for these.
package locksim
