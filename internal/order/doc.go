// Package order takes orders without selling a unit twice.
//
// An order is pending when it is placed and holds its units. Service.Place goes
//
//	validate -> check that the SKUs exist -> replay a known idempotency key, or sell: by a Strategy
//
// A Strategy decides which lock is held and how units are taken. Package strategy has them, but for two: lanes, the
// default, and batch are package batch.
//
// An order has several lines, all or nothing. Lines of the same SKU count as one, at the place of the first. The total
// is computed here, from the current prices, which must be in one currency. The times of an order are by the database's
// clock when the stock was read; an order that a batch wrote by a prediction has the predicted time, off by less than a
// second. Movements of its end have the instance's time.
//
// An order ends once: paid, by the payment provider's word (Service.TakePayment), and its units are sold; cancelled, or
// expired because it was not paid in time, and its units are available again. An end needs only the order's own row lock:
// an order ends while it is pending and, by the database's clock, not yet due (or, to expire it, due). The ends of many
// orders share a transaction (an Ender: package batch).
//
// Whatever a transaction of the shop does, it locks rows in one sequence, so that no two wait for each other:
//
//	orders -> buyers -> idempotency keys -> SKUs -> payments -> units that buyers have of SKUs with a limit
//
// Rows of a kind are sorted by their primary key where the transaction waits for them. An order that is being placed, its
// lines and all movements may be written at any moment: no other transaction waits for their rows. A delivery also has
// an idempotency key.
//
// What is promised:
//
//   - Never oversold, by every strategy that is designed to be correct, however many instances there are and whatever
//     becomes of the lock: the statement that takes the units compares and subtracts in one step.
//   - A buyer's idempotency key makes at most one order. The same request again gets the same order as it was answered
//     first, whatever has become of it or of the price; another request with the same key is refused. That holds for as
//     long as the key is kept. A refusal leaves its key free.
//   - A payment and a cancellation may have a key, under the same rules and beside the keys of orders: one key cannot
//     serve two requests.
//   - No buyer exceeds a limit, by any strategy, however many instances there are and however many orders come at
//     once. A replay is no new order. Only an order of a SKU that has a limit costs more, two statements, however much
//     its buyer has bought, and however many others have.
//   - The price and the limit of an order are those of the SKU's row while it is locked, by every strategy that is
//     designed to be correct.
//   - A refused order changes no row.
//   - Payment and expiry at the same instant end as exactly one of the two. Each unit is sold once or released once.
//     A late payment is refused, also before a sweep has found the order.
//   - Each paid order was paid by one payment, of its total. Every other payment is on record as refused, so that its
//     money can be refunded. A payment has one answer, however often and however late it is repeated.
//   - If the answer to a COMMIT is lost, the store finds out on another connection whether it was done. If that also
//     fails, the error is ErrUnknownOutcome: repeating the request with the same key returns the one outcome there is.
//
// The package knows neither HTTP nor a database: httpapi and store do.
package order
