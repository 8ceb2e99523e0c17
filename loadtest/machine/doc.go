// Package machine says what a load test ran on, as far as the operating system
// tells without being asked for more than a look, and makes room for its
// connections.
package machine
