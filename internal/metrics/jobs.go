package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// jobs are the metrics of all scheduled jobs.
type jobs struct {
	runs, items         *prometheus.CounterVec
	leader, lastSuccess *prometheus.GaugeVec
}

func newJobs(with promauto.Factory) jobs {
	const subsystem = "job"
	return jobs{
		runs: with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "runs_total",
			Help: "Runs of a job on this instance.",
		}, []string{"job", "result"}),
		items: with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "items_total",
			Help: "What the job has dealt with on this instance, such as orders expired.",
		}, []string{"job"}),
		leader: with.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "leader",
			Help: "1 if this instance runs the job, 0 if it stands by.",
		}, []string{"job"}),
		lastSuccess: with.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "last_success_timestamp_seconds",
			Help: "When the job's last good run on this instance ended; 0: never.",
		}, []string{"job"}),
	}
}

// Job is one scheduled job.
type Job struct {
	runs                map[string]prometheus.Counter // by result
	items               prometheus.Counter
	leader, lastSuccess prometheus.Gauge
}

// Job returns the metrics of the job with this name. The names are few.
func (m *Metrics) Job(name string) *Job {
	labels := prometheus.Labels{"job": name}
	return &Job{
		runs:        byResult(m.jobs.runs, labels, ok, failed),
		items:       m.jobs.items.With(labels),
		leader:      m.jobs.leader.With(labels),
		lastSuccess: m.jobs.lastSuccess.With(labels),
	}
}

// Leads tells whether this instance runs the job from now on.
func (j *Job) Leads(leads bool) {
	if leads {
		j.leader.Set(1)
	} else {
		j.leader.Set(0)
	}
}

// Ran counts a run, and what it has done also if it failed in the end.
func (j *Job) Ran(items int, err error) {
	j.runs[result(err)].Inc()
	j.items.Add(float64(items))
	if err == nil {
		j.lastSuccess.SetToCurrentTime()
	}
}
