package locksim

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
)

// Seeds runs the seeds from 1 to n, on all processors, and fails t with the log
// of those on which a rule is broken. Each processor stops at its first.
func Seeds(t *testing.T, n int) {
	var next atomic.Int64
	for shard := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for seed := next.Add(1); seed <= int64(n) && !t.Failed(); seed = next.Add(1) {
				Seed(t, uint64(seed))
			}
		})
	}
}

// Seed runs one seed, and returns the log if no rule is broken.
func Seed(t *testing.T, seed uint64) Result {
	t.Helper()
	r := Run(t, NewPlan(seed))
	if len(r.Broken) > 0 {
		t.Errorf("\n%s\nagain: go test ./internal/lock/locktest/locksim -run 'TestSim$' -seed=%d", r, seed)
	}
	return r
}
