// Package wronglock has locks over Redis that are wrong, each by one well-known
// mistake and right in everything else, for the race lab. Copy package lock
// instead.
//
//	name          the mistake                                    shows when
//	setnx-expire  SETNX, then EXPIRE: two steps                  the process dies between them
//	setex         SET with an expiry, but without NX             a second buyer comes
//	blind-del     DEL without asking whose it is                 the work takes longer than the TTL
//	get-then-del  GET, compare, DEL: not one step                the TTL passes between GET and DEL
//	short-lease   a TTL shorter than the work, no fence          the work takes longer than the TTL
//
// Each is one short file of the Redis commands that articles and bug reports show:
// the first is in the documentation of SETNX as its own pattern's flaw; blind-del
// and get-then-del are why that of SET tells to compare and delete in a script;
// short-lease is the subject of "How to do distributed locking" (M. Kleppmann,
// 2016).
//
// Who waits polls, as such code does. Nobody is told that a lock is over: that is
// what a lease is for.
//
// The commands go through the client that was given. A test or a lesson that wants
// to stop a buyer between two of them adds a hook to that client.
package wronglock
