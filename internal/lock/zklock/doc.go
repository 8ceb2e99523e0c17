// Package zklock is a lock.Backend over ZooKeeper 3.6 or later.
//
//	backend, err := zklock.New([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, zklock.Options{})
//	locker := lock.New(backend, lock.Options{TTL: 10 * time.Second}) // closes the backend in Close
//
// # How it works
//
// Each key has a node under Options.Root. Each owner that asks for the key makes
// one ephemeral sequential node below it, <owner>-<number>: the one with the
// lowest number holds the key, the others stand in line in that order. A waiter
// watches the node right before its own, and nothing else, so that a release
// wakes one. To release is to delete the node. TryAcquire looks first, and makes
// a node only if nobody else has one.
//
// A connection that is lost while a node is made leaves open whether it was. The
// owner's name in the node tells: the Backend looks for it, before it makes
// another and before it believes to have left. A node that nobody wants any more
// is deleted in the background, until the server has confirmed it or the session
// has ended: the process that made it may live for long, and so would the node.
//
// The Backend has a session of its own, instead of a caller's connection, for
// one reason: how long a session lasts is the server's decision, the library
// tells nobody what it was, and without it no TTL can be said to be safe. The
// Backend reads it from the server's first answer on each connection. So it also
// knows of each change of session before a request can be sent in the next one,
// while the library's channel of events drops what nobody reads in time.
//
// # The TTL and the session
//
// ZooKeeper has no leases with a TTL. A node stays for as long as its session,
// and the session ends when the server has heard nothing for its timeout. What
// the Locker trusts is shorter: TTL - Margin from before its last renewal was
// sent. ErrTTL refuses a TTL of more than a third of the timeout, for which there
// are three reasons:
//
//   - A renewal is a write to the owner's node. A read proves nothing: a follower
//     that is cut off from the leader answers reads for some ticks more, in a
//     session that the leader may have ended. A write has passed the leader and
//     most of the servers, and the leader refuses one whose session has ended.
//   - The leader counts a session's timeout from the client's last packet, and
//     learns of packets to a follower by a ping, once in half a tick. If the link
//     between the two breaks right after a renewal, it counts from the packet
//     before: from the renewal before, which was sent less than a TTL earlier, or
//     else the lease would have ended. So the session lasts, from when the last
//     renewal was sent, for at least timeout - TTL - half a tick. (A new leader
//     starts to count when it is elected, which is later.)
//   - A server grants at least two ticks, so that half a tick is at most a quarter
//     of the timeout. With a timeout of 3 TTLs or more, what remains is at least
//     3 - 1 - 3/4 = 1.25 TTLs: longer than the lease is trusted, even without
//     Margin. If minSessionTimeout is set below two ticks, add half a tick.
//
// The first grant rests on the packet before it in the same way; the library
// sends one every third of the timeout, for which there is room as well.
//
// The price is that a holder which crashes, or is cut off, blocks the key for the
// session's timeout: at least 3 TTLs. One that ends with Close, or that releases,
// frees it at once. Where that matters, choose a short TTL: a server with the
// default tick of 2 s grants sessions of 4 s and more, for a TTL of 1.3 s.
//
// A connection that is lost does not end a lease. Renewals fail then, and if none
// succeeds before its deadline, the Locker ends it. That a session has expired is
// told by the server to which the next connection is made. Grant.Lost of all its
// leases is closed then; one that is cut off for longer is never told in time, and
// its lease ends by its deadline as well. Whoever waits in the session makes a
// node in the next one, at the line's end.
//
// The loss of a leader ends no session: the next one counts from its election. A
// lease goes on if it is renewed in time through another server. The library
// leaves a server that hangs up at once; one that hangs only after two thirds of
// the session's timeout, which is at least 2 TTLs: the leases held through that
// server end by their deadline, and their keys are free once it has been left.
//
// # The fence
//
// ZooKeeper numbers all writes; the number is called zxid. The fence is the zxid
// of the latest change that a grant rests on, shifted by 16 bits to leave room
// for 65,535 hand-offs: the last change of the line for a node just made (often
// the node's own making, its czxid), or else the write with which an owner that
// waited, or asks again, takes the key. The node before it was deleted in between,
// and so fences rise from holder to holder, also when the key's node was removed
// and made again. A renewal raises the fence, too, without another number being
// used by the Locker.
//
// There is room for 2^47 zxids: 32,767 elections of a leader, with 4 billion
// writes each. Beyond it, and for Lease.Raise above what the servers have counted
// to, the error is ErrFence. Fences of another store, or of another ensemble, are
// no numbers to compare with these: when a key's store is changed, or its data
// was lost, the guarded rows have to be reset.
//
// # What is promised
//
//   - First come, first served, in all processes; a waiter whose session was lost
//     comes last.
//   - A release wakes one waiter. Who hears nothing looks at the line once a TTL.
//   - A connection lost at any time leaves no node that nobody wants for longer
//     than it takes to connect again, or than the session.
//   - A holder that is cut off stops trusting its lease before anybody else is
//     granted the key.
//   - Any text is a key and an owner: what is no letter, digit or one of -_:=,@.
//     becomes %XX in the node's name.
//   - Each call ends with its context, though the library's do not; what was begun
//     goes on in the background. Close waits for that, a few seconds at most. A
//     call whose context has ended before begins nothing, but for Release.
//
// # What is not
//
// A process can be paused, by the garbage collector too, between its last look at
// its lease and what it does under it. The session may end meanwhile, on a server
// that pauses as well. The fence, compared by the database, is what makes that
// safe; see package lock. A pause right before a first grant that is longer than
// about a sixth of the session's timeout also uses up the room above; what is
// left is harmless unless a follower loses its leader within the same half tick.
//
// Each grant and renewal is a write that most of the servers put to disk. For
// thousands of keys that are held for long, choose a longer TTL, or Redis.
//
// A key's node stays when its line is empty. It is a container: a server removes
// those that had children, once a minute by default. One that never had any, since
// its maker crashed first, stays; so do Options.Root and what is above it.
//
// A key can be used for 2 billion acquisitions without its node being removed in
// between; the next ones get ErrSequence, until the line is empty and the node
// is removed by the last.
//
// # Sources
//
// ZooKeeper Recipes and Solutions, "Locks", for the line and the watch on the
// predecessor. Apache Curator's protected creation, for finding a node whose
// making was not confirmed; the Sync before looking is ours, since a creation that
// is still under way through one server does not show on another. Sessions and
// their timeouts: ZooKeeper Programmer's Guide, "ZooKeeper Sessions", and the
// source of its SessionTrackerImpl and Learner.
package zklock
