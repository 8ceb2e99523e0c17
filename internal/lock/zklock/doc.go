// Package zklock is a lock.Backend over ZooKeeper 3.6 or later.
//
//	backend, err := zklock.New([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, zklock.Options{})
//	locker := lock.New(backend, lock.Options{TTL: 10 * time.Second}) // closes the backend in Close
//
// # How it works
//
// Each key has a node under Options.Root. Each owner that asks for the key makes one ephemeral sequential node below
// it, <owner>-<number>: the one with the lowest number holds the key, the others wait in that order. A waiter watches
// the node right before its own, and nothing else, so that a release wakes one. To release is to delete the node.
// TryAcquire looks first, and makes a node only if no other owner has one.
//
// A connection that is lost while a node is made leaves open whether it was. The owner's name in the node tells: the
// Backend looks for it before it makes another and before it believes to have left. A node that is not wanted any more
// is deleted in the background, until the server has confirmed it or the session has ended.
//
// The Backend has a session of its own, because without knowing how long that lasts no TTL can be said to be safe. The
// server decides on it, and the client library does not report it: the Backend reads it from the first answer on each
// connection.
//
// # The TTL and the session
//
// ZooKeeper has no leases with a TTL. A node stays for as long as its session, and the session ends when the server has
// heard nothing for its timeout. What the Locker trusts is shorter: TTL - Margin from before its last renewal was sent.
// ErrTTL refuses a TTL of more than a third of the timeout:
//
//   - A renewal is a write to the owner's node. A follower that is cut off from the leader answers reads for some ticks
//     more; a write has passed the leader and most of the servers, and the leader refuses one whose session has ended.
//   - The leader learns of packets to a follower by a ping, once in half a tick. If the link between the two breaks
//     right after a renewal, it counts from the packet before: from the renewal before, which was sent less than a TTL
//     earlier. So the session lasts, from when the last renewal was sent, for at least timeout - TTL - half a tick. (A
//     new leader counts from its election.)
//   - A server grants at least two ticks, so that half a tick is at most a quarter of the timeout. With a timeout of 3
//     TTLs or more, what remains is at least 3 - 1 - 3/4 = 1.25 TTLs. If minSessionTimeout is set below two ticks, add
//     half a tick.
//
// The price is that a holder which crashes, or is cut off, blocks the key for the session's timeout: at least 3 TTLs. A
// server with the default tick of 2 s grants sessions of 4 s and more, for a TTL of 1.3 s.
//
// A connection that is lost does not end a lease: if no renewal succeeds before its deadline, the Locker ends it.
// Grant.Lost of all leases of a session is closed when a server tells that it has expired. Waiters make a node in the
// next session, at the line's end. The loss of a leader ends no session.
//
// # The fence
//
// ZooKeeper numbers all writes; the number is called zxid. The fence is the zxid of the latest change that a grant
// rests on, shifted by 16 bits to leave room for 65,535 hand-offs: the last change of the line for a node just made, or
// else the write with which an owner that waited, or asks again, takes the key. There is room for 2^47 zxids: 32,767
// elections of a leader, with 4 billion writes each. Beyond it, and for Lease.Raise above what the servers have counted
// to, the error is ErrFence. Fences of another store or ensemble cannot be compared with these: when a key's store is
// changed, the guarded rows have to be reset.
//
// # What is promised
//
//   - First come, first served, in all processes.
//   - A release wakes one waiter. One that hears nothing looks at the line once a TTL.
//   - A connection lost at any time leaves no node that is not wanted for longer than it takes to connect again, or
//     than the session.
//   - Any text is a key and an owner: names are escaped as in URLs.
//   - Each call ends with its context, though the library's do not; what was begun goes on in the background. Close
//     waits for that, a few seconds at most. A call whose context has ended before begins nothing, but for Release.
//
// Each grant and renewal is a write that most of the servers put to disk. A key's node stays when its line is empty. It
// is a container: a server removes those that had children, once a minute by default. A key can be used for 2 billion
// acquisitions without its node being removed in between; the next ones get ErrSequence, until the line is empty and
// its node is removed.
//
// # Sources
//
// ZooKeeper Recipes and Solutions, "Locks", for the line and the watch on the predecessor. Apache Curator's protected
// creation, for finding a node whose making was not confirmed. Sessions and their timeouts: ZooKeeper Programmer's
// Guide, and the source of its SessionTrackerImpl and Learner.
package zklock
