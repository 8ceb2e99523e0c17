// Package processes runs Lockers in real processes that are killed and stopped, over one real Redis.
//
//	go test ./internal/lock/locktest/processes -v
//
// Its test starts itself again as children, in each of which some goroutines take turns on a few keys through one Locker.
// Meanwhile one child is killed as it holds a key, and replaced; one is stopped as it holds a key, until another has had
// that key, and goes on; and the store loses its memory. The children report of each lease when it begins and how long they
// trusted it, and package history judges the reports:
//
//   - Of all leases on a key, one at a time was trusted: from when Acquire returned to the last instant at which Remaining,
//     asked afterwards, said that it still was. That is what holders do before they commit.
//   - Fences rise in the order of the grants, also over the loss of memory, which excuses nothing but that a lease of before
//     it is trusted beside one of after.
//
// When all have ended nothing is left in the store. Two more tests run children that do not share a lock, and children that
// number their leases each for itself: both are noticed.
//
// All read CLOCK_MONOTONIC, which is one for all processes of a machine: the tests are for Linux. There a child is also
// ended by the kernel when its parent ends, however that does.
package processes
