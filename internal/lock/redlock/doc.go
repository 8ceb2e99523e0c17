// Package redlock keeps leases on several independent Redis servers, so that a minority of them can fail without a
// lease being lost or waiting for it.
//
//	nodes := []redis.UniversalClient{a, b, c, d, e} // no replication between them
//	locker := lock.New(redlock.New(nodes, redlock.Options{}), lock.Options{})
//
// # How it works
//
// A key is held by the owner that holds it on a quorum, N/2+1 of N nodes. All nodes are asked at the same time, and the
// answers are counted until a quorum has agreed or can no longer be reached. What is left of the TTL then is the
// validity, TTL - elapsed - drift; a grant without any is not a grant. An attempt that failed is taken back on all
// nodes, also on those that refused or did not answer: by one request to each, and where no quorum answers by further
// ones of the Locker. A node that misses them keeps its vote for one TTL. A waiter asks again after a random delay.
//
// The requests of one owner to one node go one after another, so that a release cannot overtake the request that it is
// to undo. What the client gave up at the NodeTimeout may still arrive at any time: requests are numbered, and a late
// release frees nothing that a later request took. A late acquisition can leave a vote that nobody wants: it blocks its
// node for the key, for one TTL at most.
//
// # What is promised
//
//   - With a minority of nodes down, hanging or empty, keys are acquired, renewed and released as if they were not
//     there.
//   - An operation waits for Options.NodeTimeout at most, and an acquisition that finds no quorum for three of them,
//     whatever the clients do.
//   - Renewal by quorum: lock.ErrLost means that so many nodes refuse that no quorum can hold the key for this owner.
//     Where too few answer to know, the error is ErrNoQuorum, and the Locker goes on trying until its deadline.
//   - Without a majority no lease is granted, and what the living nodes had granted is taken back.
//   - Owners are compared whole, only durations go to the nodes, and asking again finds one's own lease.
//
// # What is not
//
// There is no fence: Lease.Fence is 0. Nodes that do not know of each other cannot agree on a number that rises with
// each lease. That is Martin Kleppmann's critique: a holder that was paused past its TTL writes over its successor's
// work, and Redlock cannot prevent it. Where a late write does harm, let the database decide: a condition in the UPDATE
// itself (available >= ?), or a version column. Or take a backend that mints fences.
//
// The promise of one holder rests on clocks that run at about the same speed and do not step (one in a hundred is all
// the room there is), and on nodes that remember. A node that comes back empty has forgotten its vote, and renewals do
// not give it again; two quorums can then meet on nothing. Run nodes with appendonly, appendfsync always and
// maxmemory-policy noeviction, or start a crashed one only after the longest TTL has passed. lock.Options.Margin has to
// cover the drift as well: its default, a tenth of the TTL, does.
//
// It polls. A waiter hears of a release after some 90 ms on average, by default; waiters are in no order, and a process
// that takes a hot key again at once tends to win: lock.Options.HandoffTime is for how long it may serve its own
// callers first. TryAcquire can fail on a free key if two ask in the same instant and each gets a minority.
//
// # Sources
//
// Redis documentation, "Distributed Locks with Redis" (the Redlock algorithm, by Salvatore Sanfilippo); the critique:
// Martin Kleppmann, "How to do distributed locking" (2016). Random delays against split votes are those of elections in
// Raft (Ongaro and Ousterhout, 2014).
package redlock
