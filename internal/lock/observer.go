package lock

import (
	"context"
	"time"
)

// Observer is told what happens to the leases of a Locker, for metrics. Its
// methods are called by many goroutines at once, while others may wait for the
// key: they return quickly and do not call the Locker.
type Observer interface {
	// Waited: an Acquire or TryAcquire has ended after d; err is nil if it got
	// the lease.
	Waited(key string, d time.Duration, err error)

	// Contended: the store said that another process holds the key. Told once
	// for each time that this process begins to wait.
	Contended(key string)

	// Held: a lease was released after d.
	Held(key string, d time.Duration)

	// HandedOver: it went to the next waiter of this process, without asking the
	// store.
	HandedOver(key string)

	// Renewed: a renewal has ended after d, with the store's error if it failed.
	Renewed(key string, d time.Duration, err error)

	// Lost: a lease ended before it was released. The cause is that of the
	// lease's context.
	Lost(key string, cause error)
}

// observe tells the Observer, if there is one. The caller does not hold
// Locker.mu.
func (l *Locker) observe(tell func(Observer)) {
	if l.opt.Observer != nil {
		tell(l.opt.Observer)
	}
}

// observed is acquire, observed.
func (l *Locker) observed(ctx context.Context, key string, wait bool) (*Lease, error) {
	if l.opt.Observer == nil {
		return l.acquire(ctx, key, wait)
	}
	began := time.Now()
	lease, err := l.acquire(ctx, key, wait)
	l.opt.Observer.Waited(key, time.Since(began), err)
	return lease, err
}
