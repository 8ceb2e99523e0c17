// Package batch places the orders of all buyers who wait in an instance in one transaction, whatever SKUs they want, and
// ends orders in the same way. The strategy lanes is a Seller with a Locker, the strategy batch is one without.
//
// What an order costs is its statements, not its rows. So buyers wait in a queue, in the order of their arrival; its
// leader takes all of them, one order of each and some 256 lines at most, places their orders by one transaction with
// one statement for each table, and answers them. Meanwhile the next batch gathers. Rows are locked in the sequence of
// package order, and the leases are taken before the rows of the SKUs are locked:
//
//	lock buyers -> claim keys -> write orders -> leases -> lock and read the stock -> decide, mend orders ->
//	take units, write movements -> COMMIT -> answers -> release
//
// The transaction decides each order by what it has read under its locks. An order that is refused delays no other order
// of the batch. If the idempotency key is on record, the answer is the order of that key. If another transaction has
// locked the row of the buyer, or keeps the row of a SKU locked, the order waits behind: in a queue whose leader waits for
// these rows. An order is left out if the ctx of its buyer has ended by then, since the client may have sent the request
// to another instance and been refused there. From then on, the buyer waits for the outcome.
//
// The instances queue for the lease of the SKU that most of a batch's orders want, instead of for its row. A batch also takes
// the leases of its other SKUs, where they are free. Leases are asked for, and never depended on: if they cannot be had in
// time, because their holder has crashed or the lock's store does not answer, the batch sells without, since the rows that
// it locks decide. A holder whose lease has ended is harmless for the same reason.
//
// Payments, cancellations and expiries wait in a queue of their own, whose batches need no leases. They also lock the rows
// of their orders, and wait behind for them. The row of the buyer is locked only for a request with a key.
//
// A lone buyer is served at once; behind a batch of several, the next one gathers for a millisecond. After a batch that
// left nothing of a SKU, its next buyers wait in a queue of their own: its leader reads the stock without a transaction, and
// refuses them for as long as nothing is left.
package batch
