//go:build linux || darwin

package machine

import (
	"fmt"
	"syscall"
)

// spare are open files beside the connections: the database's, Redis', logs.
const spare = 500

// AllowConnections raises the limit on open files to what n connections need, as
// far as this process may, or says what the user can do.
func AllowConnections(n int) error {
	want := uint64(n + spare)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil //nolint:nilerr // then the first connection too many will tell
	}
	if limit.Cur >= want {
		return nil
	}
	raised := limit
	raised.Cur = want
	if limit.Max < want {
		raised.Max = want // an administrator may
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
		return fmt.Errorf("%d connections need more open files than the %d allowed here; allow more with `ulimit -n %d`, or have fewer buyers",
			n, limit.Max, want)
	}
	return nil
}
