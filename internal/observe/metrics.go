package observe

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
)

// namespace is the prefix of the names of the shop's own metrics.
const namespace = "shop"

// Metrics are the metrics of one shop. They may be used by many goroutines at once.
type Metrics struct {
	registry *prometheus.Registry

	requests, orders, jobRuns, jobItems, acquisitions, lost *prometheus.CounterVec

	duration, lockWait, lockHold *prometheus.HistogramVec
	jobLag, jobLastSuccess       *prometheus.GaugeVec

	batches  prometheus.Observer
	unleased prometheus.Counter
}

// NewMetrics returns the metrics of one shop, in a registry of their own. version and commit describe the program.
func NewMetrics(version, commit string) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	with := families{promauto.With(registry)}
	with.gauge("build_info", "Always 1; the labels say what runs.", "version", "commit").WithLabelValues(version, commit).Set(1)
	return &Metrics{
		registry: registry,
		requests: with.counter("http_requests_total", "Requests answered.", "method", "route", "status"),
		duration: with.histogram("http_request_duration_seconds", "Time from the headers of a request to the end of the answer.",
			latency(), "method", "route"),
		orders: with.counter("orders_total", "Requests to change an order or its payment, by action and outcome: placed, paid, cancelled, "+
			"noted, extended, refunded, replayed, or the last part of the problem's type.", "action", "outcome"),
		jobRuns:  with.counter("job_runs_total", "Runs of a job on this instance.", "job", "result"),
		jobItems: with.counter("job_items_total", "Items that the job has finished on this instance, such as expired orders.", "job"),
		jobLag: with.gauge("job_lag_seconds",
			"Delay of the oldest item that waits for the job. For refunds: how long the oldest refused payment has waited. "+
				"Only the instance that runs the job has this metric.", "job"),
		jobLastSuccess: with.gauge("job_last_success_timestamp_seconds",
			"End of the last successful run of the job on this instance; 0 if there was none.", "job"),
		acquisitions: with.counter("lock_acquisitions_total", "Waits for a lease that ended, by result.", "lock", "kind", "result"),
		lost:         with.counter("lock_lost_total", "Leases that ended before they were released.", "lock", "kind"),
		lockWait: with.histogram("lock_wait_seconds",
			"How long callers waited for a lease, whether they got it or not.", latency(), "lock", "kind"),
		lockHold: with.histogram("lock_hold_seconds", "How long leases were held.", latency(), "lock", "kind"),
		batches: with.histogram("batch_orders",
			"Orders that the strategies lanes and batch placed in one transaction.", prometheus.ExponentialBuckets(1, 2, 9)).WithLabelValues(),
		unleased: with.counter("unleased_batches_total",
			"Batches of the strategy lanes that sold without the leases of their SKUs, because they did not get them in time.").WithLabelValues(),
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

// Request counts an answer. route is the pattern that matched, empty for none.
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

// Order counts a request to change an order or its payment.
func (m *Metrics) Order(action, outcome string) { m.orders.WithLabelValues(action, outcome).Inc() }

// Batch counts a transaction and the orders that it placed.
func (m *Metrics) Batch(orders int) { m.batches.Observe(float64(orders)) }

// Leases counts a batch that sells without the leases of its SKUs: err is not nil.
func (m *Metrics) Leases(err error) {
	if err != nil {
		m.unleased.Inc()
	}
}

// Lock returns the observer of a locker with this name.
func (m *Metrics) Lock(name string) lock.Observer {
	for _, kind := range []string{"sku", "job", "other"} {
		m.lost.WithLabelValues(name, kind) // starts at 0, so that an alert notices the first lost lease
	}
	return lock.Observer{
		Waited: func(key string, d time.Duration, err error) {
			m.lockWait.WithLabelValues(name, kind(key)).Observe(d.Seconds())
			m.acquisitions.WithLabelValues(name, kind(key), waitResult(err)).Inc()
		},
		Held: func(key string, d time.Duration) { m.lockHold.WithLabelValues(name, kind(key)).Observe(d.Seconds()) },
		Lost: func(key string, _ error) { m.lost.WithLabelValues(name, kind(key)).Inc() },
	}
}

// kind returns the part of a key before the colon, or "other" for a key that is not the shop's. It separates the leases
// of jobs, which are held for hours, from the leases of orders.
func kind(key string) string {
	prefix, _, _ := strings.Cut(key, ":")
	if prefix == "sku" || prefix == "job" {
		return prefix
	}
	return "other"
}

func waitResult(err error) string {
	switch {
	case err == nil:
		return "acquired"
	case errors.Is(err, lock.ErrQueueFull):
		return "queue-full"
	case errors.Is(err, lock.ErrNoAnswer):
		return "no-answer"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "gave-up" // the caller did
	case errors.Is(err, lock.ErrTimeout):
		return "timeout"
	}
	return "refused"
}

// Database observes the pool of connections to the database. Call it once.
func (m *Metrics) Database(name string, conns *sql.DB) {
	m.registry.MustRegister(collectors.NewDBStatsCollector(conns, name))
}

// Primary observes which host of the database takes writes, and how often another host became the
// primary. Call it once.
func (m *Metrics) Primary(hosts []string, state func() (host string, changes int, err error)) {
	for _, host := range hosts {
		m.read("database_primary", "1 for the host of the database that takes writes, 0 for the others. "+
			"A single host always counts as the primary, and so does a SQLite file.", prometheus.Labels{"host": host}, func() float64 {
			if primary, _, err := state(); err == nil && primary == host {
				return 1
			}
			return 0
		})
	}
	m.read("database_primary_changes_total", "How often another host of the database became the primary.", nil, func() float64 {
		_, changes, _ := state()
		return float64(changes)
	})
}

// Queue observes the length of a queue. Call it once for each name.
func (m *Metrics) Queue(name string, length func() int) {
	m.read("queue_length", "Callers that wait in this instance.", prometheus.Labels{"queue": name},
		func() float64 { return float64(length()) })
}

// Redis observes the connections of a client, including those for pipelines. Call it once.
func (m *Metrics) Redis(client interface{ PoolStats() *redis.PoolStats }) {
	pool := func(name, help string, value func(*redis.PoolStats) float64) {
		m.read(name, help, nil, func() float64 {
			stats := client.PoolStats()
			if stats.PipelineStats == nil {
				return value(stats)
			}
			return value(stats) + value((*redis.PoolStats)(stats.PipelineStats))
		})
	}
	pool("redis_pool_timeouts_total", "Waits for a free connection that took too long.",
		func(s *redis.PoolStats) float64 { return float64(s.Timeouts) })
	pool("redis_pool_wait_seconds_total", "Time spent waiting for a free connection.",
		func(s *redis.PoolStats) float64 { return float64(s.WaitDurationNs) / 1e9 })
	pool("redis_pool_connections", "Open connections, not counting subscriptions.",
		func(s *redis.PoolStats) float64 { return float64(s.TotalConns) })
	pool("redis_pool_idle_connections", "Open connections that are not in use.",
		func(s *redis.PoolStats) float64 { return float64(s.IdleConns) })
}

// read registers a metric that calls value at each scrape: a counter if its name ends in _total, otherwise a gauge.
func (m *Metrics) read(name, help string, labels prometheus.Labels, value func() float64) {
	opts := prometheus.Opts{Namespace: namespace, Name: name, Help: help, ConstLabels: labels}
	var metric prometheus.Collector = prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts), value)
	if strings.HasSuffix(name, "_total") {
		metric = prometheus.NewCounterFunc(prometheus.CounterOpts(opts), value)
	}
	m.registry.MustRegister(metric)
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

// Lags records the delay of the oldest item that waits for the job.
func (j *Job) Lags(d time.Duration) { j.metrics.jobLag.WithLabelValues(j.name).Set(d.Seconds()) }

// Left records that this instance no longer runs the job and does not know its lag.
func (j *Job) Left() { j.metrics.jobLag.DeleteLabelValues(j.name) }

// Ran counts a run, and the items that it finished, even if it failed in the end.
func (j *Job) Ran(items int, err error) {
	j.metrics.jobItems.WithLabelValues(j.name).Add(float64(items))
	if err != nil {
		j.metrics.jobRuns.WithLabelValues(j.name, "failed").Inc()
		return
	}
	j.metrics.jobRuns.WithLabelValues(j.name, "ok").Inc()
	j.metrics.jobLastSuccess.WithLabelValues(j.name).SetToCurrentTime()
}
