// Package zklock is a lock.Backend over ZooKeeper 3.6 or later.
//
//	backend, err := zklock.New([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, zklock.Options{})
//	locker := lock.New(backend, lock.Options{TTL: 10 * time.Second}) // closes the backend in Close
//
// Each key has a node under Options.Root. Each owner that asks for the key makes one ephemeral sequential node below
// that node, <owner>-<number>. The owner of the lowest number holds the key. Each other owner watches only the node
// right before its own, so that a release wakes one waiter. A release deletes the node.
//
// A node has no TTL: it exists until its session ends, when the leader has heard nothing of it for a timeout that the
// server chooses. ErrTTL refuses a TTL of more than a third of the timeout. After a renewal, at least timeout - TTL -
// half a tick remain: the leader hears of a follower's clients every half tick, and if the link to the follower breaks
// right after a renewal, the renewal before counts. A server grants at least two ticks. So a crashed holder blocks the
// key for 3 TTLs or more. With the default tick of 2 s, a server grants 4 s or more, for a TTL of 1.3 s.
//
// The fence is the zxid, ZooKeeper's number of a write, of the write on which a grant is based, shifted by 16 bits to
// leave room for 65,535 hand-offs. The upper half of a zxid counts the elections of a leader: there is room for 32,767.
// Fences of another store or ensemble cannot be compared with these: if a key moves to another store, reset the rows.
//
// The Backend keeps these promises:
//   - First come, first served, in all processes, except for a Locker's hand-offs within one process.
//   - A release wakes one waiter. A waiter that is not woken checks the queue once a TTL.
//   - A lost connection does not end a lease. The loss of a leader ends no session. The end of the session ends all of
//     its leases, and its waiters go to the queue's end.
//   - If an answer is lost, the Backend looks for the owner's node before it creates another one. A node that is not
//     wanted any more is deleted in the background, until the server has confirmed the deletion.
//   - Any text can be a key and an owner: names are escaped as in URLs.
//   - Each call ends with its context, although the calls of the library do not: they go on in the background.
//
// Every client that reaches the servers can delete nodes: protect them by the network. Sources: ZooKeeper Recipes and
// Solutions, "Locks"; Curator's protected creation; the Programmer's Guide; the source of SessionTrackerImpl and Learner.
package zklock
