// Package storetest gives a test each database that a shop can have: SQLite always, MySQL and MariaDB in containers. A
// promise that holds in one and not in another is no promise; Each runs the same test on all of them.
//
// Through breaks the connection to a server at a statement that a test picks.
//
// A package that uses it has a TestMain that calls testserver.Wrap.
package storetest
