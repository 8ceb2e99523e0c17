// Package crowd sends a crowd of buyers to a shop, all at the same moment. Each buyer orders once, or again and again.
//
// A race has these steps:
//
//	connect every buyer -> all wait at the barrier -> released at once ->
//	each asks until it has an answer -> log -> recheck
//
// Each buyer has a connection of its own, which is opened before the race begins, so that a race measures the shop and
// not the dialling. A latency counts from the moment at which an order was due. The first order of a buyer is due at
// the common start; each later order is due when the one before was answered, or its payment or cancellation. So time
// in a queue and retries count.
//
// A buyer insists (Patience). With the same idempotency key, it asks again if the shop is too busy (429, 503, or any
// answer with Retry-After, which is honoured up to a limit), or if the outcome is unknown (no answer, a broken one,
// another 5xx). The clients of loadtest/faults insist in the same way.
//
// The Log has the answers to the buyers. It is written without the shop's books, so that the two can be compared.
package crowd
