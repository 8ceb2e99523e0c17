// Package shopclient speaks a shop's HTTP API, as a buyer or an operator would.
//
// It sends each request once and hands back what came: no call of it asks
// again, so that whoever counts requests counts all of them. An answer that the
// API foresees is no error, whatever its status: Buy returns it as an Answer. An
// error means that no readable answer came.
//
// A Client may be used by many goroutines at once.
package shopclient
