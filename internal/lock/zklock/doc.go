// Package zklock is a lock.Backend over ZooKeeper 3.6 or later.
//
//	backend, err := zklock.New([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, zklock.Options{})
//	locker := lock.New(backend, lock.Options{TTL: 10 * time.Second}) // closes the backend in Close
//
// # How it works
//
// Each key has a node under Options.Root. Each owner that asks for the key makes one ephemeral sequential node below
// that node, <owner>-<number>. The owner of the lowest number holds the key; the others wait in the order of their
// numbers. A waiter watches only the node right before its own, so that a release wakes one waiter. A release deletes
// the node. If its node is not the first, TryAcquire deletes it at once.
//
// If the connection is lost while a node is created, the node may exist or not. The owner's name is in the node's name.
// So the Backend looks for the node before it creates another node and before it reports a release. A node that is not
// wanted any more is deleted in the background, until the server has confirmed the deletion or the session has ended.
//
// # The TTL and the session
//
// A node has no TTL. It exists as long as its session. The session ends when the server has received nothing for a
// timeout that the server chooses. The Locker trusts a lease for less: TTL - Margin from before its last renewal was
// sent. ErrTTL refuses a TTL of more than a third of the timeout:
//
//   - A renewal is a write to the owner's node. A follower that is cut off from the leader answers reads for some more
//     ticks. A write passes the leader and most of the servers, and the leader refuses a write whose session has ended.
//   - The leader learns of packets to a follower by a ping every half tick. If the link between the two breaks right
//     after a renewal, the leader counts from the renewal before, which was sent less than a TTL earlier. So, from the
//     time when the last renewal was sent, the session lasts for at least timeout - TTL - half a tick. (A new leader
//     counts from its election.)
//   - A server grants at least two ticks, so that half a tick is at most a quarter of the timeout. With a timeout of at
//     least 3 TTLs, at least 3 - 1 - 3/4 = 1.25 TTLs remain. If minSessionTimeout is set below two ticks, add half a tick.
//
// So a holder that crashes, or is cut off, blocks the key for the session's timeout: at least 3 TTLs. A server with the
// default tick of 2 s grants sessions of 4 s and more, for a TTL of 1.3 s.
//
// A lost connection does not end a lease: the Locker ends the lease if no renewal succeeds before its deadline. The
// session ends later, with all its leases. Waiters create a node in the next session, at the queue's end. The loss of a
// leader ends no session.
//
// # The fence
//
// The fence is the zxid of the write on which a grant is based, shifted by 16 bits to leave room for 65,535 hand-offs.
// (A zxid is ZooKeeper's number of a write.) There is room for 2^47 zxids: 32,767 elections of a leader, with 4 billion
// writes each. Above that, and for Lease.Raise above the servers' counter, the error is ErrFence. Fences of another
// store or ensemble cannot be compared with these: if a key moves to another store, reset the guarded rows.
//
// # Permissions
//
// Without credentials, every client that reaches the servers can delete a node, and so take a key from its holder. With
// Options.AuthScheme, only its credentials have access to the nodes that the Backend creates, including Root and the
// nodes above it (ACL auth:cdrwa). An existing Root keeps its ACL. If other programs use the nodes above Root, create
// Root in advance, and let only these credentials create and delete below it. The credentials cross the network as they
// are: use TLS, by Options.Dial. All Lockers of a key need the same credentials: other clients get zk.ErrNoAuth.
//
// # Promises
//
//   - First come, first served, in all processes, except for a Locker's hand-offs within one process.
//   - A release wakes one waiter. A waiter that is not woken checks the queue once a TTL.
//   - After a lost connection, an unwanted node exists until the next connection, or until the end of the session.
//   - The credentials are sent again on each new connection.
//   - Any text can be a key and an owner: names are escaped as in URLs.
//   - Each call ends with its context, although the calls of the library do not; they go on in the background. Close waits
//     for them, a few seconds at most.
//
// Each grant and renewal is a write that a majority of the servers put to disk. A key's node is a container: a server
// removes it some time after its queue is empty, and its sequence numbers begin again. The numbers last for 2 billion
// acquisitions: at 1,000 a second, for 24 days in which the queue is never found empty.
//
// Sources: ZooKeeper Recipes and Solutions, "Locks"; Apache Curator's protected creation; ZooKeeper Programmer's
// Guide on sessions, and the source of SessionTrackerImpl and Learner.
package zklock
