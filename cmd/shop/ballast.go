package main

import "runtime"

// ballastSize is what the garbage collector takes for alive beside a shop's own
// 10 MB, so that it waits for 40 MB of garbage instead of 10. Nobody writes to it:
// it is address space, not memory. GOGC=400 would collect as seldom, and let
// thousands who wait at once take five times what they need; this adds 64 MB.
const ballastSize = 32 << 20

// ballast keeps the collector calm until over is called.
func ballast() (over func()) {
	b := make([]byte, ballastSize)
	return func() { runtime.KeepAlive(&b) }
}
