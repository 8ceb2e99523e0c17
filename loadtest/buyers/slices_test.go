package buyers_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/buyers"
)

func TestLog_Slices(t *testing.T) {
	t.Parallel()
	log := buyers.Log{Took: 100 * time.Millisecond, Records: []buyers.Record{
		{Outcome: buyers.Ordered, Ended: 0},
		{Outcome: buyers.Ordered, Ended: 24 * time.Millisecond},
		{Outcome: buyers.Refused, Ended: 25 * time.Millisecond},
		{Outcome: buyers.Unknown, Ended: 60 * time.Millisecond},
		{Outcome: buyers.Refused, Ended: 100 * time.Millisecond},
	}}
	want := buyers.Slices{Length: 25 * time.Millisecond, Orders: []int64{2, 0, 0, 0}, Refusals: []int64{0, 1, 0, 1}}
	if diff := cmp.Diff(want, log.Slices(4)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (buyers.Log{}).Slices(2); got.Length <= 0 {
		t.Errorf("no race: got slices of %v, want longer than none", got.Length)
	}
}

// The curve never falls, ends with the longest wait, and is no closer than there
// are buyers to tell its points apart.
func TestLog_Curve(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 10, 1000, 20_000} {
		var log buyers.Log
		for i := range n {
			log.Records = append(log.Records, buyers.Record{Latency: time.Duration(i+1) * time.Millisecond})
		}
		curve := log.Curve()
		for i := 1; i < len(curve); i++ {
			if curve[i].Wait < curve[i-1].Wait || curve[i].Percentile <= curve[i-1].Percentile {
				t.Errorf("%d buyers: %+v after %+v", n, curve[i], curve[i-1])
			}
		}
		before, last := curve[len(curve)-2], curve[len(curve)-1]
		if last.Percentile != 100 || last.Wait != time.Duration(n)*time.Millisecond {
			t.Errorf("%d buyers: the last point: got %+v, want the longest wait", n, last)
		}
		if finest := 100 - 100/float64(max(1, n)); before.Percentile > finest {
			t.Errorf("%d buyers: got a point at %v percent, want none above %v", n, before.Percentile, finest)
		}
	}
}
