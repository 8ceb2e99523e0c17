// Package shopclient speaks a shop's HTTP API, as a buyer or an operator would.
//
// It sends each request once: no call retries, so that callers can count requests. An answer that the API foresees is
// no error, whatever its status: Buy returns it as an Answer. An error means that no readable answer came.
//
// A Client may be used by many goroutines at once.
package shopclient
