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
// PurgeKeys deletes old idempotency keys, few at a time. In the database it is
// marked up to which time keys may be gone: an order that is younger than the
// mark and lacks its key is a difference to the audit, an older one is not.
//
// Audit compares levels, ledger, orders and idempotency keys in one snapshot,
// and streams: its memory does not grow with the number of orders.
//
// Of the invariants it cannot see two whole. I3, that every order a buyer was
// told of exists, takes the buyers' own record. Of I4, that fences strictly
// increase, it checks what stays true to the day: that the level was last
// written under the highest fence of its movements, and that all reservations
// under one fence are from the same moment, as those of one transaction are.
// That the times of movements rise with their fences is not checked: they are
// from clocks that may step.
package orderstore
