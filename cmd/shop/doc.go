// Command shop is the server and its operator's commands.
//
//	shop serve     sell, over HTTP
//	shop migrate   bring the database's schema up to date
//	shop seed      create SKUs with stock
//	shop audit     compare levels, ledger and orders; exit 1 on a difference
//	shop token     mint a buyer's token, for development
//	shop ready     exit 0 if a running shop is ready
//	shop version   what was built
//
// Flags stand before environment variables, these before defaults; --data also
// stands before the variable of --mysql, and the other way round. Exit codes: 0
// done, 1 failed, 2 used wrongly, 128 and the signal's number where a second one
// cut serve off. Results go to standard output, logs and errors to standard
// error.
package main
