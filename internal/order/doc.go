// Package order takes orders without selling a unit twice.
//
// An order is pending when it is placed and holds its units. Service.Place goes
//
//	validate -> do the SKUs exist? -> is the idempotency key on record? -> a Strategy sells
//
// A Strategy (package strategy; the default, lanes, is package lane) decides which lock is held and how units are
// taken. In one transaction, a single order goes
//
//	idempotency key, buyer, units, order and lines, limits, movements
//
// A batch of package lane writes its orders first, rows that no other transaction waits for, and then goes on in the
// same sequence.
//
// An order has several lines, all or nothing. Lines of the same SKU count as one, at the place of the first. The total
// is computed here, from the prices of the moment; all of them must be in one currency. Times are by the database's
// clock as of the read of the stock; a lane that uses that again adds the time passed since.
//
// An order ends once: paid, and its units are sold; cancelled by its buyer, or expired because it was not paid in time,
// and its units are available again. That needs no lock: the row is changed where it says pending and, by the
// database's clock, is in time (or, to expire it, is not).
//
// What is promised:
//
//   - Never oversold, by every strategy that is designed to be correct, however many instances there are and whatever
//     becomes of the lock: the statement that takes the units compares and subtracts in one step.
//   - A buyer's idempotency key makes at most one order. The same request again gets the same order as it was answered
//     first, whatever has become of it or of the price; another request with the same key is refused. That holds for as
//     long as the key is kept. A refusal leaves its key free.
//   - A payment and a cancellation may have a key, under the same rules and beside the keys of orders: no key is good
//     for two requests.
//   - No buyer gets over a limit, by any strategy, however many instances there are and however many orders come at
//     once. A replay is no new order.
//   - A refused order changes no row.
//   - Payment and expiry at the same instant end as exactly one of the two. Each unit is sold once or given back once.
//     A late payment is refused, also before a sweep has found the order.
//   - A COMMIT whose answer is lost is asked for, on another connection. Where that is not answered either, the error
//     is ErrUnknownOutcome: the same request again, with the same key, gets the one outcome there is.
//
// The package knows neither HTTP nor a database: httpapi and store do.
package order
