// Package redlock keeps leases on several independent Redis servers, so that a minority of them can fail without a
// lease being lost or waiting for it.
//
//	nodes := []redis.UniversalClient{a, b, c, d, e} // no replication between them
//	locker := lock.New(redlock.New(nodes, redlock.Options{}), lock.Options{})
//
// # How it works
//
// A key is held by the owner that holds it on a quorum, N/2+1 of N nodes. All nodes are asked at the same time, and the
// answers are counted until a quorum has agreed or can no longer be reached. The rest of the TTL is the validity, TTL -
// elapsed - drift; a grant without any is not a grant. An attempt that failed is released on all nodes, also on those
// that refused or did not answer; a node that misses that keeps its vote for one TTL. A waiter asks again after a random
// delay.
//
// The requests of one owner to one node are sent one after another, so that a release cannot overtake the request that
// it undoes. A request that the client gave up at the NodeTimeout may still arrive at any time: requests are numbered,
// and a late release frees nothing that a later request took. A late acquisition can leave a vote without a use, which
// blocks its node for the key, for one TTL at most.
//
// # What is promised
//
//   - With a minority of nodes down, hanging or empty, keys are acquired, renewed and released as if they were not
//     there.
//   - An operation waits for Options.NodeTimeout at most, whatever the clients do.
//   - Renewal by quorum: lock.ErrLost means that so many nodes refuse that no quorum can hold the key for this owner. If
//     too few answer, the error is ErrNoQuorum, and the Locker tries again until its deadline.
//   - Without a majority no lease is granted, and the votes of the living nodes are released.
//   - Owners are compared whole, only durations go to the nodes, and asking again finds one's own lease.
//
// # What is not
//
// There is no fence: Lease.Fence is 0. Independent nodes cannot agree on a number that rises with each lease, and so a
// holder that was paused past its TTL overwrites its successor's work (Martin Kleppmann, "How to do distributed
// locking", 2016). If a late write does harm, let the database decide, by a condition in the UPDATE itself (available
// >= ?) or a version column, or use a backend that mints fences.
//
// The promise of one holder depends on clocks that do not step and whose speeds differ by less than 1 %, and on nodes
// that keep their data: one that comes back empty has lost its vote, and two quorums can then have no node in common.
// Run nodes with appendonly, appendfsync always and maxmemory-policy noeviction, or start a crashed one only after the
// longest TTL has passed. lock.Options.Margin has to cover the drift as well: its default, a tenth of the TTL, does.
//
// A lease that is renewed survives a rolling restart of nodes that keep their data, one at a time. A renewal never takes a
// key on a node again, so a lease that was granted while a node was down keeps only the other nodes' votes: before the next
// node is stopped, wait until such leases have been released. To replace a node's address, stop all Lockers first: a quorum
// of the old list and a quorum of the new one can have no node in common.
//
// It polls. By default a waiter notices a release after some 90 ms on average. Waiters have no order, and a process
// that takes a hot key again at once tends to win; it serves its own callers for lock.Options.HandoffTime. TryAcquire
// can fail on a free key if two callers ask at the same time and each gets a minority.
//
// The source: Redis documentation, "Distributed Locks with Redis", by Salvatore Sanfilippo. Random delays against split
// votes are those of elections in Raft (Ongaro and Ousterhout, 2014).
package redlock
