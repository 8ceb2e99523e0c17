// Package load has buyers order from shops over HTTP as fast as they are answered.
//
// The load is closed: each buyer has one connection, which is kept, and sends its
// next order as soon as it has the answer to the one before, under a name and an
// idempotency key that were never used. Load.Loop does so for a time, Load.Once
// lets all buyers send one order at the same moment.
//
// The buyers share the machine with the shops, so they are cheap: a buyer is one
// goroutine that writes the request itself and reads the answer with net/http's
// parser. A net/http.Transport would add two goroutines for each connection and
// the hand-overs between them.
package load
