// Package order takes orders without selling a unit twice.
//
// A placed order is pending and holds its units. An order that costs nothing is paid when it is placed. Service.Place
// takes these steps:
//
//	validate -> check that the SKUs exist -> replay a known idempotency key, or sell: by a Strategy
//
// A Strategy decides which lock is held and how units are taken. Package strategy has all strategies except lanes, the
// default, and batch, which are in package batch.
//
// An order has several lines, which are placed, and end, all together or not at all. Lines of the same SKU count as one
// line, at the place of the first. The total is computed here, from the current prices, which must be in one currency.
// The times of an order come from the database's clock when the stock was read. If a batch has predicted the order, its
// times may be off by less than a second. The movements of an order's end have the instance's time.
//
// An order ends once. If the payment provider reports its payment (Service.TakePayment), the order is paid and its
// units are sold. If the order is cancelled, or expires because it was not paid in time, its units are available again.
// To end an order, a transaction needs only the lock of the order's row. The order must be pending and, by the
// database's clock, not due; to expire, it must be due. The ends of many orders share a transaction: package batch has
// the Ender.
//
// Every transaction of the shop locks rows in one sequence, so that no two transactions wait for each other:
//
//	orders -> buyers -> idempotency keys -> payments -> SKUs -> units that buyers have of SKUs with a limit
//
// If a transaction waits for several rows of a kind, it locks them in the order of their primary keys. New orders,
// their lines, the payments of free orders and all movements may be written at any moment, because no other transaction
// waits for these rows. The idempotency keys include the keys of deliveries.
//
// The package promises:
//
//   - A strategy that is designed to be correct never oversells, with any number of instances and any failure of the lock:
//     the statement that takes the units compares and subtracts in one step.
//   - A buyer's idempotency key makes at most one order. If the request is repeated, the answer is the order as it was
//     first answered, even if the order or the price has changed. Another request with the same key is refused. This
//     holds for as long as the key is kept. A refusal leaves its key free.
//   - A payment or a cancellation may have a key, under the same rules: one key cannot serve two requests of any kind.
//   - No buyer exceeds a limit, by any strategy, with any number of instances and of orders at once. A replay is not a new
//     order. The limit costs only an order of a limited SKU: two statements, for any number of earlier orders.
//   - The price and the limit of an order are read from the SKU's row while it is locked, by every strategy that is
//     designed to be correct.
//   - A refused order changes no row.
//   - If payment and expiry come at the same instant, exactly one of them ends the order. Each unit is sold once or
//     released once. A late payment is refused, even before a sweep has found the order.
//   - Each paid order was paid by one payment, of its total. Every other payment is on record as refused, so that its
//     money can be refunded. A payment has one answer, however often and however late it is repeated.
//   - If the answer to a COMMIT is lost, the store finds out on another connection whether the COMMIT was done. If it
//     cannot find out, the error is ErrUnknownOutcome: repeating the request with the same key returns the outcome.
//
// The package knows neither HTTP nor SQL, which are in httpapi and store.
package order
