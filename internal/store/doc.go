// Package store keeps orders and stock in MySQL, MariaDB or SQLite, and audits them.
//
// All SQL goes through gorm with bound parameters. It is the same for all databases. This package hides
// their differences:
//
//   - Text compares byte by byte, including trailing spaces. By MySQL's default, the idempotency keys "ABC" and "abc"
//     would be equal.
//   - Times are UTC, to the microsecond.
//   - "Rows affected" counts the rows that a WHERE matched, whether they changed or not.
//   - Text is never cut: MySQL refuses text that is too long.
//   - TLS is verified or off: a DSN that falls back to plaintext or trusts any server is refused.
//   - Errors are distinguished by their numbers (tx.go), never by their text.
//
// A Store returns the errors of package order, stock.ErrInvalid, and the reason why a context ended.
package store
