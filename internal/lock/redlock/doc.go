// Package redlock keeps leases on several independent Redis servers. If a minority of the servers fails, no lease is
// lost or delayed.
//
//	nodes := []redis.UniversalClient{a, b, c, d, e} // no replication between them
//	locker := lock.New(redlock.New(nodes, redlock.Options{}), lock.Options{})
//
// # How it works
//
// An owner holds a key if it holds the key on a quorum, N/2+1 of N nodes. The backend asks all nodes at the same time, and
// counts the answers until a quorum has agreed or can no longer be reached. The validity of a grant is TTL - elapsed -
// drift; a grant without validity does not count. A failed attempt is released on all nodes, including nodes that refused
// or did not answer; a node that misses the release keeps its vote for one TTL. A waiter asks again after a random delay.
//
// The requests of one owner to one node are sent one after another, so that a release cannot overtake the request that
// it undoes. A request that the client gave up at the NodeTimeout may still arrive at any time. So requests are
// numbered, and a late release does not free a key that a later request took. A late acquisition can leave a useless
// vote, which blocks the key on its node for at most one TTL.
//
// # Promises
//
//   - If a minority of nodes is down, hanging or empty, the other nodes acquire, renew and release keys as usual.
//   - An operation waits for Options.NodeTimeout at most, whatever the clients do.
//   - Renewal by quorum: lock.ErrLost means that so many nodes refuse that no quorum can hold the key for this owner. If
//     too few nodes answer, the error is ErrNoQuorum, and the Locker tries again until its deadline.
//   - Without a majority, no lease is granted, and the votes of the living nodes are released.
//   - Owners are compared whole, only durations go to the nodes, and a repeated request finds its own lease.
//
// # Limits
//
// There is no fence: Lease.Fence is 0. Independent nodes cannot agree on a number that rises with each lease. So a
// holder that was paused past its TTL overwrites its successor's work (Martin Kleppmann, "How to do distributed
// locking", 2016). If a late write does harm, let the database decide, by a condition in the UPDATE itself (available
// >= ?) or a version column, or use a backend that mints fences.
//
// The promise of one holder needs clocks that do not step and whose speeds differ by less than 1 %, and nodes that keep
// their data. If a node comes back empty, it has lost its votes, and two quorums can then have no node in common. Run
// nodes with appendonly, appendfsync always and maxmemory-policy noeviction, or start a crashed node only after the
// longest TTL has passed. lock.Options.Margin must also cover the drift: its default, a tenth of the TTL, does.
//
// If nodes keep their data and are restarted one at a time, a renewed lease survives. A renewal never takes a key on a
// node again. So a lease that was granted while a node was down has only the other nodes' votes: before you stop the
// next node, wait until such leases have been released. To replace a node's address, stop all Lockers first: a quorum
// of the old list and a quorum of the new list can have no node in common.
//
// Waiters poll. By default, a waiter notices a release after about 90 ms on average. Waiters have no order: a process
// that takes a hot key again at once tends to win, and serves its own callers for lock.Options.HandoffTime. If two
// callers ask for a free key at the same time and each gets a minority, TryAcquire can fail.
//
// Sources: Redis documentation, "Distributed Locks with Redis", by Salvatore Sanfilippo; for the random delays against
// split votes, the elections of Raft (Ongaro and Ousterhout, 2014).
package redlock
