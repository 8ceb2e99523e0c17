// Package cli is what the programs of the load test do alike on the command line:
// they read flags, show help, and end with an exit code.
package cli
