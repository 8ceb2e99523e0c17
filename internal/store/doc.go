// Package store opens the database of a shop: MySQL, MariaDB, or SQLite for the
// embedded default. It knows nothing about orders; stockstore and orderstore
// keep their rows in what it opens.
//
// All SQL above this package goes through gorm with bound parameters, and reads
// the same on the three databases. Where they differ, this package levels it:
//
//   - Text compares byte by byte everywhere, trailing spaces included. MySQL's
//     own default would take the idempotency keys "ABC" and "abc" for one.
//   - Times are UTC, to the microsecond (type Time).
//   - "Rows affected" counts the rows that a WHERE matched, so that 0 means that
//     nothing matched, never that nothing changed.
//   - Text is never cut: MySQL refuses what is too long.
//   - TLS is verified or is none: a DSN that falls back to plaintext or trusts any
//     server is refused.
//   - Errors are told apart by their numbers (Classify), never by their text.
//
// InTx runs a transaction the way an order needs it: again after a deadlock,
// rolled back explicitly after a lock wait timeout, with a COMMIT that no
// caller's cancellation can cut in half, and an honest ErrOutcomeUnknown when
// the answer to that COMMIT is lost. A transaction whose client vanished without
// a word is rolled back by the server after 90 s (wait_timeout in the DSN).
//
// The schema is a list of numbered SQL files, one set for all three (folder
// migrations). Migrate applies what is missing, Pending tells whether anything
// is.
package store
