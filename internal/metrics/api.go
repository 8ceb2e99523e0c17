package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// api are the metrics of the HTTP API.
type api struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	orders   *prometheus.CounterVec
}

func newAPI(with promauto.Factory) api {
	return api{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: "http", Name: "requests_total",
			Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		duration: with.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: "http", Name: "request_duration_seconds",
			Help:    "How long requests took, from the headers read to the answer written.",
			Buckets: latency(),
		}, []string{"method", "route"}),
		orders: with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "orders_total",
			Help: "Orders by what was asked for and what became of it.",
		}, []string{"action", "outcome"}),
	}
}

// Request counts an answer. The route is the pattern that matched, empty for
// none.
func (m *Metrics) Request(method, route string, status int, took time.Duration) {
	method = known(method)
	if route == "" {
		route = "none"
	}
	m.api.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.api.duration.WithLabelValues(method, route).Observe(took.Seconds())
}

// Order counts what became of placing, paying or cancelling an order.
func (m *Metrics) Order(action, outcome string) {
	m.api.orders.WithLabelValues(action, outcome).Inc()
}

// known keeps methods that a client made up out of the labels.
func known(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
