package observe

import (
	"database/sql"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
)

// namespace is the prefix of the names of the shop's own metrics.
const namespace = "shop"

// Metrics are the metrics of one shop. They may be used by many goroutines at once.
type Metrics struct {
	registry *prometheus.Registry

	requests, orders *prometheus.CounterVec
	duration         *prometheus.HistogramVec

	jobRuns, jobItems                 *prometheus.CounterVec
	jobLeader, jobLag, jobLastSuccess *prometheus.GaugeVec

	locks           locks
	batches         prometheus.Observer
	unleased        prometheus.Counter
	operatorRefused prometheus.Counter
}

// Build is the version and commit of a program.
type Build struct{ Version, Commit string }

// NewMetrics returns the metrics of one shop, in a registry of their own.
func NewMetrics(b Build) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	with := families{promauto.With(registry)}
	with.gauge("build_info", "Always 1; the labels say what runs.", "version", "commit").WithLabelValues(b.Version, b.Commit).Set(1)
	return &Metrics{
		registry: registry,
		requests: with.counter("http_requests_total", "Requests answered.", "method", "route", "status"),
		duration: with.histogram("http_request_duration_seconds", "How long requests took, from the headers read to the answer written.",
			latency(), "method", "route"),
		orders: with.counter("orders_total", "Requests to change an order or its payment, by what was asked for and what became of it: placed, paid, cancelled, "+
			"noted, extended, refunded, replayed, or the last part of the problem's type.", "action", "outcome"),
		jobRuns:         with.counter("job_runs_total", "Runs of a job on this instance.", "job", "result"),
		jobItems:        with.counter("job_items_total", "What the job has dealt with on this instance, such as orders expired.", "job"),
		jobLeader:       with.gauge("job_leader", "1 if this instance runs the job, 0 if it stands by.", "job"),
		jobLag:          with.gauge("job_lag_seconds", "How long the oldest item that waits for the job has been due, or, for refunds, how long the oldest refused payment has waited for its refund; only on the instance that runs the job.", "job"),
		jobLastSuccess:  with.gauge("job_last_success_timestamp_seconds", "When the job's last good run on this instance ended; 0: never.", "job"),
		locks:           newLocks(with),
		batches:         with.histogram("batch_orders", "Orders that the strategies lanes and batch placed in one transaction.", prometheus.ExponentialBuckets(1, 2, 9)).WithLabelValues(),
		unleased:        with.counter("unleased_batches_total", "Batches of the strategy lanes that sold without the leases of their SKUs: these could not be had in time.").WithLabelValues(),
		operatorRefused: with.counter("operator_refused_total", "Requests to the operator's API without the right token.").WithLabelValues(),
	}
}

// families registers the shop's own metrics.
type families struct{ promauto.Factory }

func (f families) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func (f families) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func (f families) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// latency returns the bounds of a histogram of seconds, from an uncontended lock to the longest request.
func latency() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

// Handler returns the handler of GET /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Request counts an answer. The route is the pattern that matched, empty for none.
func (m *Metrics) Request(method, route string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // a client may make up methods
	}
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}

// Order counts what became of a request to change an order or its payment.
func (m *Metrics) Order(action, outcome string) { m.orders.WithLabelValues(action, outcome).Inc() }

// Batch counts a transaction and the orders that it placed.
func (m *Metrics) Batch(orders int) { m.batches.Observe(float64(orders)) }

// Leases counts a batch that sells without the leases of its SKUs, unless err is nil.
func (m *Metrics) Leases(err error) {
	if err != nil {
		m.unleased.Inc()
	}
}

// RefusedOperator counts a request to the operator's API without the right token.
func (m *Metrics) RefusedOperator() { m.operatorRefused.Inc() }

// Database observes the pool of connections to the database. Call it once.
func (m *Metrics) Database(conns *sql.DB) {
	m.registry.MustRegister(collectors.NewDBStatsCollector(conns, namespace))
}

// Primary observes which of the database's hosts takes writes, and how often that has changed. Call it once.
func (m *Metrics) Primary(hosts []string, state func() (host string, changes int, err error)) {
	with := promauto.With(m.registry)
	for _, host := range hosts {
		with.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "database_primary",
			Help:        "1 for the host of the database that takes writes, 0 for the others. The only host counts as the primary, and a SQLite file as a host.",
			ConstLabels: prometheus.Labels{"host": host},
		}, func() float64 {
			if primary, _, err := state(); err == nil && primary == host {
				return 1
			}
			return 0
		})
	}
	with.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "database_primary_changes_total",
		Help: "How often another host of the database became the primary.",
	}, func() float64 {
		_, changes, _ := state()
		return float64(changes)
	})
}

// Queue observes the length of a queue. Call it once for each name.
func (m *Metrics) Queue(name string, length func() int) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "queue_length",
		Help:        "Callers of this instance that wait.",
		ConstLabels: prometheus.Labels{"queue": name},
	}, func() float64 { return float64(length()) })
}

// Redis observes the connections of a client, those for pipelines included. Call it once.
func (m *Metrics) Redis(client interface{ PoolStats() *redis.PoolStats }) {
	with := promauto.With(m.registry)
	stats := func() redis.PoolStats {
		all := *client.PoolStats()
		if p := all.PipelineStats; p != nil {
			all.Timeouts, all.WaitDurationNs = all.Timeouts+p.Timeouts, all.WaitDurationNs+p.WaitDurationNs
			all.TotalConns, all.IdleConns = all.TotalConns+p.TotalConns, all.IdleConns+p.IdleConns
		}
		return all
	}
	of := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: namespace, Subsystem: "redis_pool", Name: name, Help: help}
	}
	with.NewCounterFunc(prometheus.CounterOpts(of("timeouts_total", "Waits for a free connection that took too long.")),
		func() float64 { return float64(stats().Timeouts) })
	with.NewCounterFunc(prometheus.CounterOpts(of("wait_seconds_total", "Time spent waiting for a free connection.")),
		func() float64 { return float64(stats().WaitDurationNs) / 1e9 })
	with.NewGaugeFunc(prometheus.GaugeOpts(of("connections", "Open connections, without those of subscriptions.")),
		func() float64 { return float64(stats().TotalConns) })
	with.NewGaugeFunc(prometheus.GaugeOpts(of("idle_connections", "Open connections that are not in use.")),
		func() float64 { return float64(stats().IdleConns) })
}

// Job is the metrics of one scheduled job.
type Job struct {
	metrics *Metrics
	name    string
}

// Job returns the metrics of the job with this name.
func (m *Metrics) Job(name string) *Job {
	m.jobLastSuccess.WithLabelValues(name) // both start at 0
	m.jobRuns.WithLabelValues(name, "failed")
	return &Job{m, name}
}

// Leads records whether this instance runs the job from now on.
func (j *Job) Leads(leads bool) {
	leader := j.metrics.jobLeader.WithLabelValues(j.name)
	leader.Set(0)
	j.metrics.jobLag.DeleteLabelValues(j.name)
	if leads {
		leader.Set(1)
	}
}

// Lags records for how long the oldest item that waits for the job has been due.
func (j *Job) Lags(d time.Duration) { j.metrics.jobLag.WithLabelValues(j.name).Set(d.Seconds()) }

// Ran counts a run, and the items that it dealt with even if it failed in the end.
func (j *Job) Ran(items int, err error) {
	j.metrics.jobRuns.WithLabelValues(j.name, result(err)).Inc()
	j.metrics.jobItems.WithLabelValues(j.name).Add(float64(items))
	if err == nil {
		j.metrics.jobLastSuccess.WithLabelValues(j.name).SetToCurrentTime()
	}
}

// result is the label of a renewal or a job's run.
func result(err error) string {
	if err != nil {
		return "failed"
	}
	return "ok"
}
