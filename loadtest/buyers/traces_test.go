package buyers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/shopclient"
)

// request read the stock at a number of microseconds and wrote one unit less, or
// left that to the database.
func request(at, seen int64, overwrites bool) *shopclient.Trace {
	t := &shopclient.Trace{Begun: time.UnixMicro(at - 1), Read: time.UnixMicro(at), Seen: seen}
	if overwrites {
		left := seen - 1
		t.Wrote = &left
	}
	return t
}

func TestTraces_Around(t *testing.T) {
	t.Parallel()
	type one struct {
		at, seen   int64
		overwrites bool
	}
	tests := []struct {
		name     string
		all      []one
		wantAt   []int64
		wantPair []int
	}{
		{"none", nil, nil, nil},
		{"no collision", []one{{5, 10, true}, {6, 9, true}, {7, 8, true}, {8, 7, true}, {9, 6, true}}, []int64{5, 6, 7, 8}, nil},
		{"the database subtracts", []one{{5, 10, false}, {6, 10, false}}, []int64{5, 6}, nil},
		{"the first", []one{{5, 10, true}, {6, 10, true}, {7, 10, true}, {8, 9, true}, {9, 9, true}}, []int64{5, 6, 7, 8}, []int{0, 1}},
		{
			"in the middle", []one{{1, 10, true}, {2, 9, true}, {3, 8, true}, {4, 7, true}, {5, 7, true}, {6, 6, true}},
			[]int64{2, 3, 4, 5}, []int{2, 3},
		},
		{"apart", []one{{1, 10, true}, {2, 9, true}, {3, 8, true}, {4, 7, true}, {5, 6, true}, {6, 10, true}}, []int64{1, 6}, []int{0, 1}},
		{"at the end", []one{{1, 10, true}, {2, 9, true}, {3, 8, true}, {4, 10, true}}, []int64{1, 2, 3, 4}, []int{0, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for range 20 { // answers come in any order
				var traces Traces
				for _, i := range rand.Perm(len(tt.all)) {
					o := tt.all[i]
					traces.add(fmt.Sprintf("buyer-%d", i), true, true, request(o.at, o.seen, o.overwrites))
				}
				got, pair := traces.Around(4)
				var at []int64
				for _, r := range got {
					at = append(at, r.Read.UnixMicro())
				}
				if diff := cmp.Diff(tt.wantAt, at); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.wantPair, pair); diff != "" {
					t.Errorf("pair (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// A race of any size keeps few, and one late collision is found all the same.
func TestTraces_bounded(t *testing.T) {
	t.Parallel()
	var traces Traces
	for i := range int64(5000) {
		traces.add("b", true, true, request(i+1, 10_000-i, true))
		traces.add("r", false, true, request(i+1, 0, false))
	}
	traces.add("late", true, true, request(9999, 10_000-4999, true))
	traces.add("silent", true, true, nil)
	if got := len(traces.earliest); got != mostTraced {
		t.Errorf("kept: got %d, want %d", got, mostTraced)
	}
	got, pair := traces.Around(12)
	if len(got) != 2 || got[1].Buyer != "late" || !cmp.Equal(pair, []int{0, 1}) {
		t.Errorf("got %+v, %v, want the pair alone", got, pair)
	}
}
