// Package buyers lets many buyers want the same thing at the same moment.
//
// A Race goes
//
//	connect every buyer -> all wait at the barrier -> released at once ->
//	each asks until it has an answer -> log
//
// Each buyer has a connection of its own, which stands before the race begins,
// so that the shop is measured and not the dialling. Every latency counts from
// the common start, also that of a buyer whom the shop got round to last and of
// one who had to ask again: queueing is part of what a buyer waits for.
//
// A buyer asks again, with the same idempotency key, when the shop is too busy
// (429, 503, or any answer with Retry-After, which is honoured up to a limit) and when the
// outcome is unknown (no answer, a broken one, another 5xx). It gives up after a
// number of tries.
//
// The Log is the buyers' side of the story: what each was told. It is written
// without looking at the shop's books, so that the two can be compared. Recheck
// then asks for each order that a buyer was told of, as that buyer.
package buyers
