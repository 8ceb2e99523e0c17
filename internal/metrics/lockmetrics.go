package metrics

import "github.com/prometheus/client_golang/prometheus"

// lockMetrics are those of one locker and one kind of key, looked up once.
type lockMetrics struct {
	wait, hold                 prometheus.Observer
	acquisitions, renewals     map[string]prometheus.Counter // by result
	contended, handovers, lost prometheus.Counter
}

func (l locks) of(labels prometheus.Labels) lockMetrics {
	return lockMetrics{
		wait:         l.wait.With(labels),
		hold:         l.hold.With(labels),
		acquisitions: byResult(l.acquisitions, labels, acquired, timeout, queueFull, noAnswer, gaveUp, refused),
		renewals:     byResult(l.renewals, labels, ok, failed),
		contended:    l.contended.With(labels),
		handovers:    l.handovers.With(labels),
		lost:         l.lost.With(labels),
	}
}

// byResult returns a counter for each result, all at 0.
func byResult(v *prometheus.CounterVec, labels prometheus.Labels, results ...string) map[string]prometheus.Counter {
	v = v.MustCurryWith(labels)
	counters := make(map[string]prometheus.Counter, len(results))
	for _, r := range results {
		counters[r] = v.WithLabelValues(r)
	}
	return counters
}
