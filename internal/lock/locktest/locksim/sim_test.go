package locksim_test

import (
	"flag"
	"slices"
	"testing"

	"example.com/shop/internal/lock/locktest/locksim"
)

var (
	seeds = flag.Int("seeds", usual, "how many seeds to run, from 1")
	only  = flag.Uint64("seed", 0, "run this seed alone, and print its log; 0: many")
)

// Every rule holds on every seed.
func TestSim(t *testing.T) {
	if *only == 0 {
		locksim.Seeds(t, *seeds)
		return
	}
	if r := locksim.Seed(t, *only); !t.Failed() {
		t.Logf("\n%s", r)
	}
}

// "A seed repeats itself": two runs of one plan have the same log, but for the
// rare ones in which two things of one process fall on the same instant.
func TestSim_Repeats(t *testing.T) {
	if shuffled {
		t.Skip("the race detector makes the scheduler choose at random: not with -race")
	}
	compared, differ := 0, []uint64(nil)
	for seed := uint64(1); compared < 100; seed++ {
		p := locksim.NewPlan(seed)
		if !p.Repeats() {
			continue
		}
		compared++
		first, second := locksim.Run(t, p), locksim.Run(t, p)
		// What one process does at one instant may be written down in any order.
		slices.Sort(first.Log)
		slices.Sort(second.Log)
		if !slices.Equal(first.Log, second.Log) {
			differ = append(differ, seed)
		}
	}
	if len(differ) > compared/20 {
		t.Errorf("of %d seeds, these differ from one run to the next: %v", compared, differ)
	}
}
