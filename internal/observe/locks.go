package observe

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/shop/internal/lock"
)

// locks are the metrics of all lockers.
type locks struct {
	wait, hold             *prometheus.HistogramVec
	acquisitions, renewals *prometheus.CounterVec
	contended, handovers   *prometheus.CounterVec
	lost                   *prometheus.CounterVec
}

func newLocks(with families) locks {
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return with.counter("lock_"+name, help, append([]string{"lock", "kind"}, more...)...)
	}
	return locks{
		wait:         with.histogram("lock_wait_seconds", "How long callers waited for a lease, with or without success.", latency(), "lock", "kind"),
		hold:         with.histogram("lock_hold_seconds", "How long leases were held.", latency(), "lock", "kind"),
		acquisitions: counter("acquisitions_total", "Ends of the wait for a lease.", "result"),
		renewals:     counter("renewals_total", "Renewals of a lease.", "result"),
		contended:    counter("contended_total", "Callers that had to wait for another process."),
		handovers:    counter("handovers_total", "Leases passed on in this process without asking the store."),
		lost:         counter("lost_total", "Leases that ended before they were given back."),
	}
}

// Lock returns the observer of a locker with this name.
func (m *Metrics) Lock(name string) lock.Observer {
	for _, kind := range []string{"sku", "job", "other"} {
		m.locks.lost.WithLabelValues(name, kind) // starts at 0, so that an alert notices the first
	}
	return lockObserver{m.locks, name}
}

type lockObserver struct {
	locks
	name string
}

// kind is the part of a key before the colon, or "other" for a key that is not of this shop. It keeps the leases of
// jobs, which are held for hours, apart from those of orders.
func kind(key string) string {
	prefix, _, _ := strings.Cut(key, ":")
	if prefix == "sku" || prefix == "job" {
		return prefix
	}
	return "other"
}

// Waited implements lock.Observer.
func (o lockObserver) Waited(key string, d time.Duration, err error) {
	o.wait.WithLabelValues(o.name, kind(key)).Observe(d.Seconds())
	o.acquisitions.WithLabelValues(o.name, kind(key), waitResult(err)).Inc()
}

func waitResult(err error) string {
	switch {
	case err == nil:
		return "acquired"
	case errors.Is(err, lock.ErrTimeout):
		return "timeout"
	case errors.Is(err, lock.ErrQueueFull):
		return "queue-full"
	case errors.Is(err, lock.ErrNoAnswer):
		return "no-answer"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "gave-up" // the caller did
	}
	return "refused"
}

// Contended implements lock.Observer.
func (o lockObserver) Contended(key string) { o.contended.WithLabelValues(o.name, kind(key)).Inc() }

// Held implements lock.Observer.
func (o lockObserver) Held(key string, d time.Duration) {
	o.hold.WithLabelValues(o.name, kind(key)).Observe(d.Seconds())
}

// HandedOver implements lock.Observer.
func (o lockObserver) HandedOver(key string) { o.handovers.WithLabelValues(o.name, kind(key)).Inc() }

// Renewed implements lock.Observer.
func (o lockObserver) Renewed(key string, _ time.Duration, err error) {
	o.renewals.WithLabelValues(o.name, kind(key), result(err)).Inc()
}

// Lost implements lock.Observer.
func (o lockObserver) Lost(key string, _ error) { o.lost.WithLabelValues(o.name, kind(key)).Inc() }
