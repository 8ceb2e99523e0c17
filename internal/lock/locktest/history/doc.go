// Package history checks what several processes say of their leases afterwards.
//
// Whoever uses a lock writes down one Lease for each that it had: who, which
// key, which fence, from when until when it trusted it. Check then reads all of
// them at once and looks for two rules:
//
//   - of all leases on a key, one at a time is trusted;
//   - a lease's fence is higher than that of every earlier lease on its key.
//
// The rules are few and the sort is known, so the checker is some loops and not
// a search: a lease is an interval, and intervals either overlap or they follow
// one another.
//
// What the store did is said with History.Forgot and History.Rewound. A store
// that lost its memory may grant a key whose first holder still trusts it; if
// its clock went back as well, it may mint a lower fence. Package lock promises
// neither away, and so Check does not judge leases that lie on both sides of
// such an instant.
//
// All times of one History come from one clock. Several machines cannot judge
// each other by this package, several processes of one machine can.
package history
