// Package order takes orders without selling a unit twice.
//
// An order is pending when it is placed and holds its units. Placing one goes
//
//	validate -> seen this idempotency key? -> take the lease of the SKU ->
//	one transaction {idempotency key, units, order, movement} -> commit -> release
//
// and the order of these steps is the point. The lease is released after the
// commit: released before it, the next buyer reads stock that is about to
// change. The commit is not started with too little of the lease left. The key
// is looked at before the fence, or a buyer's own committed order would look
// like somebody else's newer write.
//
// How buyers are kept apart is a Strategy, a row of one table: which lock is
// held, and in which stock.Way the units are taken. Some rows are wrong on
// purpose; only a shop in teaching mode lets a request choose.
//
// What is promised:
//
//   - Never oversold, by every strategy that Promises it, however many
//     instances there are and whatever becomes of the lock: the statement that
//     takes the units compares and subtracts in one step.
//   - A buyer's idempotency key makes at most one order. The same request again
//     gets the same order; another request with the same key is refused.
//   - A refused order changes no row.
//   - A COMMIT whose answer is lost is ErrUnknownOutcome. This version does not
//     find out by itself: that is left to the buyer, whose retry with the same
//     key gets the order if it was placed and places it if not.
//
// The package knows neither HTTP nor a database: orderhttp and orderstore do.
package order
