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
	return lock.Observer{
		Waited: func(key string, d time.Duration, err error) {
			m.locks.wait.WithLabelValues(name, kind(key)).Observe(d.Seconds())
			m.locks.acquisitions.WithLabelValues(name, kind(key), waitResult(err)).Inc()
		},
		Contended: func(key string) { m.locks.contended.WithLabelValues(name, kind(key)).Inc() },
		Held: func(key string, d time.Duration) {
			m.locks.hold.WithLabelValues(name, kind(key)).Observe(d.Seconds())
		},
		HandedOver: func(key string) { m.locks.handovers.WithLabelValues(name, kind(key)).Inc() },
		Renewed: func(key string, _ time.Duration, err error) {
			m.locks.renewals.WithLabelValues(name, kind(key), result(err)).Inc()
		},
		Lost: func(key string, _ error) { m.locks.lost.WithLabelValues(name, kind(key)).Inc() },
	}
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
