package main

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// "Each is told to use a third of its processors, at least one. The one shop of grow has
// them all."
func Test_share(t *testing.T) {
	t.Parallel()
	all := runtime.GOMAXPROCS(0)
	for n, want := range map[int]int{1: all, 2: max(1, all/2), 3: max(1, all/3), all: 1, 2 * all: 1} {
		if diff := cmp.Diff([]string{"GOMAXPROCS=" + strconv.Itoa(want)}, share(n)); diff != "" {
			t.Errorf("of %d (-want +got):\n%s", n, diff)
		}
	}
}
