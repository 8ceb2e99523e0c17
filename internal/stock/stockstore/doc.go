// Package stockstore keeps SKUs and their ledger in a database.
//
// Each way to take units is one short file: overwrite.go shows the lost update
// as people write it, conditional.go and fenced.go the statements that cannot
// oversell. They run inside the transaction of an order, so that units, order
// and ledger are there together or not at all.
//
// Create and Supply bring units in, each in a transaction of its own.
package stockstore
