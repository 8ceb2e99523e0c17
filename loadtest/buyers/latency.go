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
	at, highest := l.waits()
	return Percentiles{P50: at(50), P90: at(90), P99: at(99), Max: highest}
}

// Share is a point of the latency curve: this percentage of the buyers waited at
// most that long.
type Share struct {
	Percentile float64
	Wait       time.Duration
}

// Curve returns the latency curve, closer towards its end, where it is steep, and
// no closer than there are buyers to tell points apart.
func (l Log) Curve() []Share {
	at, highest := l.waits()
	var curve []Share
	finest := 100 - 100/float64(max(1, len(l.Records)))
	for _, p := range [...]float64{
		0, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 92, 94, 96, 98, 99, 99.2, 99.4, 99.6, 99.8, 99.9, 99.95, 99.99,
	} {
		if p <= finest {
			curve = append(curve, Share{p, at(p)})
		}
	}
	return append(curve, Share{100, highest})
}

// waits returns the percentiles of a histogram over all buyers, and the longest
// wait.
func (l Log) waits() (at func(percentile float64) time.Duration, highest time.Duration) {
	for _, r := range l.Records {
		highest = max(highest, r.Latency)
	}
	h := hdrhistogram.New(1, max(2, highest.Microseconds()), 3)
	for _, r := range l.Records {
		_ = h.RecordValue(r.Latency.Microseconds()) // fails only above highest
	}
	return func(p float64) time.Duration {
		// A bucket's upper edge may lie above every value that is in it.
		return min(highest, time.Duration(h.ValueAtPercentile(p))*time.Microsecond)
	}, highest
}
