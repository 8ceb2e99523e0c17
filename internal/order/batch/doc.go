// Package batch places the orders of all buyers who wait in an instance in one transaction, for any SKUs, and ends
// orders in the same way. The strategy lanes is a Seller with a Locker; the strategy batch is a Seller without.
//
// An order costs its statements, not its rows. So buyers wait in a queue, in the order of their arrival. The leader of
// the queue takes all of them, one order of each buyer and some 256 lines at most. It places their orders by one
// transaction, with one statement for each table, and answers them. Meanwhile the next batch gathers. The transaction
// locks rows in the sequence of package order. It takes the leases before it locks the rows of the SKUs:
//
//	lock buyers -> claim keys -> write orders -> leases -> lock and read the stock -> decide, mend orders ->
//	take units, write movements -> COMMIT -> answers -> release
//
// The transaction decides each order by the rows that it has locked and read. A refused order delays no other order of
// the batch. If the idempotency key is on record, the answer is the order of that key. If the ctx of a buyer has ended
// before the decision, the order is left out, because the client may have sent the request to another instance and been
// refused there. After the decision, the buyer waits for the outcome, for two seconds at most.
//
// If another transaction has locked a row of a request, the request waits in the queue behind: it delays no other
// request. The batch locks existing rows without waiting; only for rows of SKUs does it wait for a moment. An INSERT
// must wait while another transaction has locked the gap for the new row. After a second, the batch rolls back, and
// each of its requests gets a transaction of its own. While a SKU stays locked, one request at a time tries it. A cart
// that waits for one of its rows does not hold up the orders of its other SKUs: each failed attempt puts it behind
// them.
//
// The instances queue for the lease of the SKU that most orders of a batch want, not for its row. A batch also takes
// the leases of its other SKUs that are free. Leases are asked for, and never depended on. If a lease is not granted in
// time, because its holder has crashed or the lock's store does not answer, the batch sells without it: the locked rows
// decide. So a holder whose lease has ended is also harmless.
//
// Payments, cancellations and expiries wait in a queue of their own. Their batches need no leases. They also lock the
// rows of their orders. They lock the row of a buyer only for a request with a key.
//
// A lone buyer is served at once. After a batch of several orders, the next batch gathers for a millisecond. After a
// batch that left nothing of a SKU, the next buyers of this SKU wait in a queue of their own. The leader of that queue
// reads the stock without a transaction, and refuses the buyers for as long as nothing is left.
package batch
