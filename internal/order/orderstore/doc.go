// Package orderstore keeps orders in a database and audits them.
//
// It implements order.Store and order.Tx. The transaction of an order holds its
// idempotency key, its units, the order with its lines, and its movements: all
// of them or none. What a transaction promises beyond that (again after a
// deadlock, a COMMIT that is not cut off) is store.InTx.
//
// A transaction in which a statement failed is never committed, even if the
// function that ran it returns nil: after a deadlock the database has rolled
// back already, and what came later would be saved alone. A refusal, such as
// stock.ErrSoldOut, is no failure; a transaction may go on after it.
//
// Audit compares levels, ledger, orders and idempotency keys in one snapshot,
// and streams: its memory does not grow with the number of orders.
package orderstore
