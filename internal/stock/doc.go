// Package stock has the values that a shop counts: SKUs with their levels, the movements between them, and money. It
// knows no database; package store keeps them in one.
//
// A SKU is one thing for sale, counted in whole units. Its Level says where every unit ever supplied is now: available
// to buy, reserved by a pending order, or sold. Units move between those three and never vanish:
//
//	Supplied = Available + Reserved + Sold, none of them negative.
//
// Each change is recorded as a Movement in an append-only ledger, in the transaction that makes the change. For the
// audit, an Account compares level, ledger and orders.
package stock
