// Package store keeps orders and stock in MySQL, MariaDB or SQLite, and audits them.
//
// All SQL goes through gorm with bound parameters, and is the same for the three databases. This package hides their
// differences:
//
//   - Text compares byte by byte everywhere, trailing spaces included. MySQL's own default would take the idempotency
//     keys "ABC" and "abc" for one.
//   - Times are UTC, to the microsecond.
//   - "Rows affected" counts the rows that a WHERE matched, also those that did not change.
//   - Text is never cut: MySQL refuses what is too long.
//   - TLS is verified or off: a DSN that falls back to plaintext or trusts any server is refused.
//   - Errors are distinguished by their numbers (tx.go), never by their text.
//
// Errors of a Store are those of package order, stock.ErrInvalid, and the reason why a context ended.
package store
