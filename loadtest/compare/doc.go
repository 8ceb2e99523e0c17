// Package compare sets two saved reports of the load test side by side.
//
// Speeds are compared only where both runs asked for the same and ran on the same
// machine, database and Redis; verdicts always. What differs is said, and so are
// strategies that only one of the two has. The commit, the Go version and the time
// may differ: they are what runs are compared for.
//
// A report is a file that anybody may have written. It is read up to a limit, of
// the one version that is known, and refused where it says what cannot be, or what
// a terminal could take for a command.
package compare
