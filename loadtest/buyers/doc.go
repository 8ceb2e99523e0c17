// Package buyers lets many buyers want the same thing at the same moment, or a few
// things again and again.
//
// A Race, unless its Pace says otherwise, goes
//
//	connect every buyer -> all wait at the barrier -> released at once ->
//	each asks until it has an answer -> log
//
// Each buyer has a connection of its own, which stands before the race begins,
// so that the shop is measured and not the dialling. Every latency counts from
// the common start, also that of a buyer whom the shop got round to last and of
// one who had to ask again: queueing is part of what a buyer waits for.
//
// Where its Pace lets orders follow each other, every latency counts from the
// moment at which the order was due. In an open race that moment does not depend on
// the shop, so that a slow one cannot hide it; in a closed one it is the answer to
// the buyer's order before.
//
// A buyer asks again, with the same idempotency key, when the shop is too busy
// (429, 503, or any answer with Retry-After, which is honoured up to a limit) and when the
// outcome is unknown (no answer, a broken one, another 5xx). It gives up after a
// number of tries. Who may have bought and is told that it is sold out asks once more
// a little later: the shop's instances hear of each other's orders with a delay.
//
// The Log is the buyers' side of the story: what each was told. It is written
// without looking at the shop's books, so that the two can be compared. Recheck
// then asks for each order that a buyer was told of, as that buyer. Traces are what
// the shop said that some requests did.
package buyers
