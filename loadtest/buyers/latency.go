package buyers

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Percentiles say how long buyers waited.
type Percentiles struct {
	P50, P90, P99, Max time.Duration
}

// Latencies returns the percentiles over all buyers, those without an answer
// included, with three significant digits.
func (l Log) Latencies() Percentiles {
	var highest time.Duration
	for _, r := range l.Records {
		highest = max(highest, r.Latency)
	}
	h := hdrhistogram.New(1, max(2, highest.Microseconds()), 3)
	for _, r := range l.Records {
		_ = h.RecordValue(r.Latency.Microseconds()) // fails only above highest
	}
	at := func(p float64) time.Duration {
		// A bucket's upper edge may lie above every value that is in it.
		return min(highest, time.Duration(h.ValueAtPercentile(p))*time.Microsecond)
	}
	return Percentiles{P50: at(50), P90: at(90), P99: at(99), Max: highest}
}
