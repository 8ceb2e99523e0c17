// Command shop is the server and its operator's commands.
//
//	shop serve     sell, over HTTP
//	shop migrate   bring the database's schema up to date
//	shop seed      create SKUs with stock
//	shop audit     compare levels, ledger and orders; exit 1 on a difference
//	shop ready     exit 0 if a running shop is ready
//	shop version   what was built
//
// Flags stand before environment variables, these before defaults. Exit codes:
// 0 done, 1 failed, 2 used wrongly. Results go to standard output, logs and
// errors to standard error.
package main
