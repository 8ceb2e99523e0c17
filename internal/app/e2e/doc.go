// Package e2e holds tests of the whole shop and nothing else.
//
// Each starts three instances of one shop, wired as in production, on MySQL with
// Redis, on MariaDB with Redis, and on the embedded default, and uses them over
// HTTP alone, as buyers and an operator do: life cycles, races, an instance that
// shuts down and a Redis that is gone for a while, both in the middle of sales.
//
// What buyers and operator were told is written down as it comes in. When a test
// has done what it does, that book is compared with the shop's: every order that
// was acknowledged is there with the content that was acknowledged, there is no
// other, the levels are what follows from them, and the audit is clean.
package e2e
