package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// namespace begins the names of the shop's own metrics.
const namespace = "shop"

// Metrics are those of one shop. It may be used by many goroutines at once.
type Metrics struct {
	registry *prometheus.Registry

	api     api
	locks   locks
	jobs    jobs
	batches prometheus.Histogram
	refused prometheus.Counter
}

// Build is what a program knows of its own making.
type Build struct{ Version, Commit string }

// New returns the metrics of a shop that has done nothing yet.
func New(b Build) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	with := promauto.With(registry)
	with.NewGauge(prometheus.GaugeOpts{
		Namespace:   namespace,
		Name:        "build_info",
		Help:        "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit},
	}).Set(1)
	return &Metrics{
		registry: registry, api: newAPI(with), locks: newLocks(with), jobs: newJobs(with),
		batches: with.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: "lane", Name: "batch_orders",
			Help:    "Orders that a lane placed in one transaction.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256},
		}),
		refused: with.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "sold_out_remembered_total",
			Help: "Orders refused without asking database or Redis, because their SKU is remembered to be sold out.",
		}),
	}
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Batch counts a transaction of a lane and the orders that it placed.
func (m *Metrics) Batch(orders int) { m.batches.Observe(float64(orders)) }

// RefusedFromMemory counts an order that was refused without asking anybody.
func (m *Metrics) RefusedFromMemory() { m.refused.Inc() }

// latency returns the bounds of a histogram of seconds: from what a lock takes
// that nobody else wants to what a request may take.
func latency() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}
