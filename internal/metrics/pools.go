package metrics

import (
	"database/sql"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
)

// Database observes a pool of connections to the database; once.
func (m *Metrics) Database(conns *sql.DB) {
	m.registry.MustRegister(collectors.NewDBStatsCollector(conns, namespace))
}

// Redis observes the connections of a client; once.
func (m *Metrics) Redis(client interface{ PoolStats() *redis.PoolStats }) {
	m.registry.MustRegister(&redisPool{stats: client.PoolStats})
}

// Queue observes a line of callers, by how many stand in it now. The names are
// few, and each is given once.
func (m *Metrics) Queue(name string, length func() int) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "queue_length",
		Help:        "Callers of this instance that stand in line.",
		ConstLabels: prometheus.Labels{"queue": name},
	}, func() float64 { return float64(length()) })
}

// redisPool turns the pool's own numbers into metrics, all taken at once.
type redisPool struct{ stats func() *redis.PoolStats }

type poolMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*redis.PoolStats) float64
}

func (p *redisPool) metrics() []poolMetric {
	row := func(kind prometheus.ValueType, name, help string, value func(*redis.PoolStats) float64) poolMetric {
		return poolMetric{prometheus.NewDesc(prometheus.BuildFQName(namespace, "redis_pool", name), help, nil, nil), kind, value}
	}
	return []poolMetric{
		row(prometheus.CounterValue, "hits_total", "Free connections found.",
			func(s *redis.PoolStats) float64 { return float64(s.Hits) }),
		row(prometheus.CounterValue, "misses_total", "Free connections not found.",
			func(s *redis.PoolStats) float64 { return float64(s.Misses) }),
		row(prometheus.CounterValue, "timeouts_total", "Waits for a free connection that took too long.",
			func(s *redis.PoolStats) float64 { return float64(s.Timeouts) }),
		row(prometheus.CounterValue, "waits_total", "Waits for a free connection.",
			func(s *redis.PoolStats) float64 { return float64(s.WaitCount) }),
		row(prometheus.CounterValue, "wait_seconds_total", "Time spent waiting for a free connection.",
			func(s *redis.PoolStats) float64 { return float64(s.WaitDurationNs) / 1e9 }),
		row(prometheus.CounterValue, "stale_connections_total", "Connections closed because they were dead or old.",
			func(s *redis.PoolStats) float64 { return float64(s.StaleConns) }),
		row(prometheus.GaugeValue, "connections", "Open connections, beside those of subscriptions.",
			func(s *redis.PoolStats) float64 { return float64(s.TotalConns) }),
		row(prometheus.GaugeValue, "idle_connections", "Open connections that nobody uses.",
			func(s *redis.PoolStats) float64 { return float64(s.IdleConns) }),
	}
}

// Describe implements prometheus.Collector.
func (p *redisPool) Describe(to chan<- *prometheus.Desc) {
	for _, m := range p.metrics() {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (p *redisPool) Collect(to chan<- prometheus.Metric) {
	now := p.stats()
	for _, m := range p.metrics() {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(now))
	}
}
