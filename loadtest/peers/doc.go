// Command peers compares internal/lock with other lock libraries, and with bare
// Redis commands, on one Redis in one run. See its --help and README.md.
package main
