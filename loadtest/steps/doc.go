// Package steps plays two buyers against each other, by a schedule: the same two
// requests meet at the same two points every time, and so end the same way every
// time. A race shows that a shop oversells; a play shows why.
//
//	scenario       what happens to A, the first buyer                      fails
//	lost-update    stops between reading the stock and writing it          none, mutex, setex
//	crash          its process is killed while it takes its lock           setnx-expire
//	pause          its process stands still for longer than its lock lives short-lease
//	early-release  stops just before its COMMIT                            release-before-commit
//	late-release   gives its lock back after that has run out              blind-del, get-then-del
//
// A buys from instance 1, a process of its own that is really stopped, continued
// and killed; B from instance 2, in this one. Both are real shops in teaching mode
// on one database and one Redis. What each request does, they record themselves
// (package tape of the shop): its steps, its Redis commands, its SQL.
//
// What is promised:
//
//   - A strategy ends in its own scenario the same way every time: the wrong one
//     fails, the right ones pass.
//   - Nothing waits for a length of time to pass where something can be waited for,
//     and every wait has a bound.
//   - No process outlives the Player, nor this process, however that ends.
package steps
