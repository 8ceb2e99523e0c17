// Package crowd sends a crowd of buyers to a shop, all at the same moment: each orders once, or again and again.
//
// A race goes
//
//	connect every buyer -> all wait at the barrier -> released at once ->
//	each asks until it has an answer -> log -> recheck
//
// Each buyer has a connection of its own, which stands before the race begins, so that the shop is measured and not the
// dialling. A latency counts from the moment at which an order was due: the common start for a buyer's first order, and
// the answer to the order before for each later one, or to its payment or cancellation. So the time in a queue counts, and
// retries count.
//
// A buyer insists (Patience): with the same idempotency key, it asks again when the shop is too busy (429, 503, or any answer
// with Retry-After, which is honoured up to a limit) and when the outcome is unknown (no answer, a broken one, another 5xx).
// The clients of loadtest/faults insist in the same way.
//
// The Log has what the buyers were answered. It is written without a look at the shop's books, so that the two can be
// compared.
package crowd
