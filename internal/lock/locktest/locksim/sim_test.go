package locksim_test

import (
	"flag"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/lock/locktest/locksim"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds to run, from 1")
	only  = flag.Uint64("seed", 0, "run this seed alone, and print its log; 0: many")
)

// Every rule holds on every seed.
func TestSim(t *testing.T) {
	t.Parallel()
	if *only != 0 {
		if log := seed(t, *only); !t.Failed() {
			t.Logf("\n%s", log)
		}
		return
	}
	var next atomic.Int64
	for shard := range runtime.GOMAXPROCS(0) { // each stops at its first failure
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for n := next.Add(1); n <= int64(*seeds) && !t.Failed(); n = next.Add(1) {
				seed(t, uint64(n))
			}
		})
	}
}

// seed runs one seed, and fails t with its log if a rule is broken.
func seed(t *testing.T, n uint64) (log fmt.Stringer) {
	t.Helper()
	ok, log := locksim.Run(t, n)
	if !ok {
		t.Errorf("\n%s\nagain: go test ./internal/lock/locktest/locksim -run 'TestSim$' -seed=%d", log, n)
	}
	return log
}
