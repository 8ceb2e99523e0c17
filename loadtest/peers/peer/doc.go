// Package peer makes lock libraries comparable: each is an adapter behind one
// small interface, configured as its documentation recommends.
//
// What is the same for all: one Redis, leases of TTL, and for those that use
// go-redis one set of client options. Peers that wait by asking again do so every
// Retry, which is faster than their defaults.
package peer
