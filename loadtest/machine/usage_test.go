package machine

import (
	"runtime"
	"testing"
	"time"
)

func TestUse(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("not known there")
	}
	before := Use()
	const much = 64 << 20
	block := make([]byte, much)
	for end := time.Now().Add(time.Minute); Use().CPU < before.CPU+50*time.Millisecond && time.Now().Before(end); {
		for i := 0; i < much; i += 4096 {
			block[i]++
		}
	}
	after := Use()
	if after.CPU < before.CPU+50*time.Millisecond {
		t.Errorf("CPU: got %v after %v and a minute of work", after.CPU, before.CPU)
	}
	if after.PeakMemory < much || after.PeakMemory > 64<<30 {
		t.Errorf("peak: got %d bytes, want %d and something", after.PeakMemory, much)
	}
	runtime.KeepAlive(block)
}
