package processes

import (
	"syscall"
	"time"
	"unsafe"
)

// clock reads CLOCK_MONOTONIC, whose zero is the same for all processes of the
// machine. Package time reads it too, but tells only how it differs from an
// earlier reading of the same process.
func clock() time.Time {
	const monotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return time.Unix(ts.Unix()).UTC()
}
