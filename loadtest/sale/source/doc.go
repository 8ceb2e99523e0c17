// Package source finds or starts the Redis and the database of a benchmark, and
// says what they are: which version, and whether a commit is on disk when it
// returns.
package source
