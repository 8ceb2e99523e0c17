// Package stock has the values that a shop counts: SKUs with their levels, movements of units, and money. It knows no
// database; package store keeps the values in one.
//
// A SKU is one thing for sale, counted in whole units. Its Level says where every supplied unit is: available to buy,
// reserved by a pending order, or sold. Units move between these three states and never vanish:
//
//	Supplied = Available + Reserved + Sold, none of them negative.
//
// The transaction that changes a level also writes a Movement to an append-only ledger. For the audit,
// an Account compares level, ledger and orders.
package stock
