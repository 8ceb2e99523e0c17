// Package redlock keeps leases on several independent Redis servers, so that a
// minority of them can fail without anybody losing a lease or waiting for it.
//
//	nodes := []redis.UniversalClient{a, b, c, d, e} // no replication between them
//	locker := lock.New(redlock.New(nodes, redlock.Options{}), lock.Options{})
//
// # How it works
//
// A key is held by whoever holds it on a quorum, N/2+1 of N nodes. All nodes are
// asked at the same time. The answers are counted as they come: once a quorum
// has agreed, or can no longer be reached, nobody waits for the rest. What is
// left of the TTL then is the validity, TTL - elapsed - drift; a grant without
// any is not a grant. An attempt that failed is taken back on all nodes, also on
// those that refused or said nothing. Whoever got no quorum tries again after a
// random delay, Options.Tries times.
//
// The requests of one owner to one node go one after another, for as long as the
// client waits for their ends, also where the caller does not any more: a release
// cannot overtake the request that it is to undo, and an answer that comes late
// leaves nothing behind. What the client gave up at the NodeTimeout may still
// arrive at any time. So requests are numbered, and nodes compare: a late release
// frees nothing that a later request took. A late acquisition can leave a vote that
// nobody wants, for one TTL at most: it blocks its node for the key, and grants
// nobody anything.
//
// # What is promised
//
//   - With a minority of nodes down, hanging or empty, keys are acquired, renewed
//     and released as if they were not there.
//   - An operation takes Options.NodeTimeout at most, whatever the clients do:
//     their own retries (go-redis: MaxRetries, three), dials (DialTimeout, five
//     times) and timeouts go on without the caller. Each node has a bounded number
//     of requests under way; beyond it, it counts as not answering. Clients should
//     set ContextTimeoutEnabled, which ends what nobody waits for.
//   - Renewal by quorum: lock.ErrLost means that so many nodes refuse that no
//     quorum can hold the key for this owner. Where too few answer to know, the
//     error is ErrNoQuorum, and the Locker goes on trying until its deadline.
//   - Without a majority no lease is granted, and what the living nodes had
//     granted is taken back.
//   - Owners are compared whole, only durations go to the nodes, and asking again
//     finds one's own lease.
//
// # What is not
//
// There is no fence: Lease.Fence is 0. A fence has to rise with each lease, and
// nodes that do not know of each other cannot agree on such a number; each could
// count, but the next quorum may consist of others. That is Martin Kleppmann's
// critique: without one, a holder that was paused past its TTL writes over its
// successor's work, and Redlock cannot prevent it. Where a late write does harm,
// take the lease for efficiency only and let the database decide: a condition in
// the UPDATE itself (available >= ?), or a version column. Or take a backend that
// mints fences: Redis, ZooKeeper, or the database's own lock table.
//
// The promise of one holder rests on clocks that run at about the same speed and
// do not step (Options.DriftFactor is all the room there is), and on nodes that
// remember. A node that comes back empty has forgotten its vote, and with it two
// quorums can meet on nothing: run nodes with appendonly and appendfsync always,
// or start a crashed one only after the longest TTL has passed. To ask all nodes,
// not just a quorum, makes it less likely, and no more. lock.Options.Margin has to
// cover the drift as well: its default, a tenth of the TTL, does.
//
// It polls. A waiter hears of a release after some 90 ms on average, by default;
// nobody stands in line, and a process that takes a hot key again at once tends to
// win: lock.Options.HandoffTime is for how long it may serve its own callers first.
// Waiting ends with ErrTries after about 5 s, also where lock.Options.MaxWait and
// the context allow more.
//
// If a process ends before a node has heard its release, that node is blocked for
// the key, though not the key, until the TTL has passed. TryAcquire can fail on a free key if two
// ask in the same instant and each gets a minority.
//
// # Sources
//
// Redis documentation, "Distributed Locks with Redis" (the Redlock algorithm, by
// Salvatore Sanfilippo); the critique: Martin Kleppmann, "How to do distributed
// locking" (2016); the answer: Salvatore Sanfilippo, "Is Redlock safe?" (2016).
// Random delays against split votes are those of elections in Raft (Ongaro and
// Ousterhout, 2014).
package redlock
