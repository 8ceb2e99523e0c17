// Package storetest gives a test each kind of database: SQLite, and MySQL and MariaDB in containers. A promise must
// hold in all of them, so Each runs the same test on all.
//
// Through breaks the connection to a server at a statement that a test picks.
//
// A package that uses storetest needs a TestMain that calls testserver.Wrap.
package storetest
