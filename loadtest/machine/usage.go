package machine

import "time"

// Usage is what a process has used.
type Usage struct {
	CPU        time.Duration // of its own and of the system for it
	PeakMemory int64         // bytes in RAM, at most
}
