//go:build unix

package machine

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Use returns what this process has used since its start. What is not known is 0.
func Use() Usage {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return Usage{}
	}
	peak := int64(u.Maxrss)       //nolint:unconvert // on some systems it is an int32
	if runtime.GOOS != "darwin" { // which counts bytes, the others kilobytes
		peak <<= 10
	}
	if own := ownPeak(); own > 0 {
		peak = own
	}
	return Usage{CPU: time.Duration(u.Utime.Nano() + u.Stime.Nano()), PeakMemory: peak}
}

// ownPeak reads what Linux tells, 0 elsewhere: there, the peak of getrusage is also
// that of the program which started this one.
func ownPeak() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(text, []byte("\nVmHWM:"))
	if !found {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(line), []byte("kB")))), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}
