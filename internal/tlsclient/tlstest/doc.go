// Package tlstest makes certificates for tests: a CA and what it signs.
package tlstest
