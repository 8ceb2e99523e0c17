package buyers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLog(t *testing.T) {
	t.Parallel()
	log := Log{Records: []Record{
		{Buyer: "a", Outcome: Ordered, OrderID: "1", Tries: 1},
		{Buyer: "b", Outcome: Ordered, OrderID: "2", Tries: 3},
		{Buyer: "c", Outcome: Ordered, OrderID: "1", Tries: 1},
		{Buyer: "d", Outcome: Ordered, OrderID: "1", Tries: 1},
		{Buyer: "e", Outcome: Refused, Tries: 2},
		{Buyer: "f", Outcome: Failed, Tries: 1, Reason: "rare"},
		{Buyer: "g", Outcome: Unknown, Tries: 4, Reason: "frequent"},
		{Buyer: "h", Outcome: Unknown, Tries: 4, Reason: "frequent"},
		{Buyer: "i", Outcome: Unknown}, // never got round to asking
	}}
	got := map[string]any{
		"ordered": log.Count(Ordered),
		"refused": log.Count(Refused),
		"failed":  log.Count(Failed),
		"unknown": log.Count(Unknown),
		"retries": log.Retries(),
		"reasons": log.Reasons(),
	}
	want := map[string]any{
		"ordered": int64(4),
		"refused": int64(1),
		"failed":  int64(1),
		"unknown": int64(3),
		"retries": int64(2 + 1 + 3 + 3),
		"reasons": []Reason{{"frequent", 2}, {"rare", 1}, {"", 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestLog_Latencies(t *testing.T) {
	t.Parallel()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	tests := []struct {
		name string
		log  func() Log
		want Percentiles
	}{
		{"no buyers", func() Log { return Log{} }, Percentiles{}},
		{
			"one buyer",
			func() Log { return Log{Records: []Record{{Latency: ms(7)}}} },
			Percentiles{ms(7), ms(7), ms(7), ms(7)},
		},
		{
			"1 to 1000 ms",
			func() Log {
				var log Log
				for i := range 1000 {
					log.Records = append(log.Records, Record{Latency: ms(i + 1)})
				}
				return log
			},
			Percentiles{ms(500), ms(900), ms(990), ms(1000)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.log().Latencies()
			for name, pair := range map[string][2]time.Duration{
				"p50": {got.P50, tt.want.P50}, "p90": {got.P90, tt.want.P90},
				"p99": {got.P99, tt.want.P99}, "max": {got.Max, tt.want.Max},
			} {
				// Three significant digits.
				if off := (pair[0] - pair[1]).Abs(); off > pair[1]/500 {
					t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
				}
			}
		})
	}
}
