package observe

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/shop/internal/lock"
)

// locks are the metrics of all lockers.
type locks struct {
	wait, hold             *prometheus.HistogramVec
	acquisitions, renewals *prometheus.CounterVec
	contended, handovers   *prometheus.CounterVec
	lost                   *prometheus.CounterVec
}

func newLocks(with promauto.Factory) locks {
	const subsystem = "lock"
	histogram := func(name, help string) *prometheus.HistogramVec {
		return with.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: latency(),
		}, []string{"lock", "kind"})
	}
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
		}, append([]string{"lock", "kind"}, more...))
	}
	return locks{
		wait:         histogram("wait_seconds", "How long callers waited for a lease, with or without success."),
		hold:         histogram("hold_seconds", "How long leases were held."),
		acquisitions: counter("acquisitions_total", "Ends of the wait for a lease.", "result"),
		renewals:     counter("renewals_total", "Renewals of a lease.", "result"),
		contended:    counter("contended_total", "Times that this process began to wait for another one."),
		handovers:    counter("handovers_total", "Leases passed on in this process without asking the store."),
		lost:         counter("lost_total", "Leases that ended before they were given back."),
	}
}

// lockMetrics are those of one locker and one kind of key, looked up once.
type lockMetrics struct {
	wait, hold                 prometheus.Observer
	acquisitions, renewals     map[string]prometheus.Counter // by result
	contended, handovers, lost prometheus.Counter
}

// Results of a wait for a lease.
const (
	acquired  = "acquired"
	timeout   = "timeout"
	queueFull = "queue-full"
	noAnswer  = "no-answer"
	gaveUp    = "gave-up" // the caller did
	refused   = "refused" // any other reason
)

// Lock returns the observer of a locker with this name. There are few names, and each is asked for once.
func (m *Metrics) Lock(name string) lock.Observer {
	o := lockObserver{}
	for _, kind := range []string{"sku", "job", otherKind} {
		labels := prometheus.Labels{"lock": name, "kind": kind}
		o[kind] = lockMetrics{
			wait:         m.locks.wait.With(labels),
			hold:         m.locks.hold.With(labels),
			acquisitions: byResult(m.locks.acquisitions, labels, acquired, timeout, queueFull, noAnswer, gaveUp, refused),
			renewals:     byResult(m.locks.renewals, labels, ok, failed),
			contended:    m.locks.contended.With(labels),
			handovers:    m.locks.handovers.With(labels),
			lost:         m.locks.lost.With(labels),
		}
	}
	return o
}

// otherKind is that of keys which are none of this shop's.
const otherKind = "other"

// lockObserver has the metrics of a locker by the kind of the key: its part before the colon. The leases of jobs
// are held for hours, which would hide how long orders hold theirs.
type lockObserver map[string]lockMetrics

func (o lockObserver) of(key string) lockMetrics {
	kind, _, _ := strings.Cut(key, ":")
	if found, ok := o[kind]; ok {
		return found
	}
	return o[otherKind]
}

// Waited implements lock.Observer.
func (o lockObserver) Waited(key string, d time.Duration, err error) {
	l := o.of(key)
	l.wait.Observe(d.Seconds())
	l.acquisitions[waitResult(err)].Inc()
}

func waitResult(err error) string {
	switch {
	case err == nil:
		return acquired
	case errors.Is(err, lock.ErrTimeout):
		return timeout
	case errors.Is(err, lock.ErrQueueFull):
		return queueFull
	case errors.Is(err, lock.ErrNoAnswer):
		return noAnswer
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return gaveUp
	}
	return refused
}

// Contended implements lock.Observer.
func (o lockObserver) Contended(key string) { o.of(key).contended.Inc() }

// Held implements lock.Observer.
func (o lockObserver) Held(key string, d time.Duration) { o.of(key).hold.Observe(d.Seconds()) }

// HandedOver implements lock.Observer.
func (o lockObserver) HandedOver(key string) { o.of(key).handovers.Inc() }

// Renewed implements lock.Observer.
func (o lockObserver) Renewed(key string, _ time.Duration, err error) {
	o.of(key).renewals[result(err)].Inc()
}

// Lost implements lock.Observer.
func (o lockObserver) Lost(key string, _ error) { o.of(key).lost.Inc() }
