//go:build linux || darwin

package machine

import "syscall"

// AllowConnections raises the limit on open files to what n connections need, as
// far as this process may, or returns a TooManyError.
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
		return &TooManyError{Connections: n, Allowed: int(limit.Max)}
	}
	return nil
}
