package main

import (
	"runtime"
	"testing"
)

// "What the garbage collector takes for alive": it does not begin before the heap
// is twice as large.
func TestBallast(t *testing.T) {
	over := ballast()
	defer over()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NextGC < ballastSize {
		t.Errorf("the collector begins at %d bytes, want more than %d", m.NextGC, ballastSize)
	}
}
