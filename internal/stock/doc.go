// Package stock counts what a shop has to sell.
//
// A SKU is one thing for sale, counted in whole units. Its Level says where
// every unit ever received is now: available to buy, reserved by an unpaid
// order, or sold. Units move between those three and never vanish, so that at
// any moment
//
//	Supplied = Available + Reserved + Sold, none of them negative.
//
// Each change is written down as a Movement in an append-only ledger, in the
// transaction that makes the change. Level and ledger are two accounts of the
// same units; an Account sets them beside each other and the orders, for the audit.
//
// Units come with a Delivery, which counts once however often it is told.
//
// A Way is how units are taken from a SKU when several buyers want the last
// ones. Fenced and Conditional cannot oversell, whatever else goes wrong: the
// database compares and subtracts in one statement. Overwrite is the mistake
// that the load test shows: it writes back a number computed from an earlier
// read.
//
// The package knows no database; stockstore keeps its types in one.
package stock
