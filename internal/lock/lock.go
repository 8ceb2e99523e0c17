package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// MaxKey is how many bytes a key may have.
const MaxKey = 512

// Locker hands out leases on keys. It may be used by many goroutines at once; a process needs one for each store.
// Callers of one process that want the same key wait in one queue, first come first served, and one of them at a time
// asks the store.
type Locker struct {
	backend Backend
	opt     Options

	open    context.Context // ends with Close
	shut    context.CancelFunc
	work    sync.WaitGroup // calls and background requests; added to only while mu is held, or by one of them
	retries chan struct{}  // capacity 1: has an element while a release is retried
	closing sync.Once
	closed  error // of the backend

	mu     sync.Mutex        // never held during I/O, nor while user code runs
	queues map[string]*queue // of the keys that this process holds or asks for
}

// New returns a Locker over the backend, which it closes in Close. It panics if an option is invalid.
func New(b Backend, o Options) *Locker {
	o, err := o.checked()
	if err != nil {
		panic(err)
	}
	l := &Locker{backend: b, opt: o, queues: make(map[string]*queue), retries: make(chan struct{}, 1)}
	l.open, l.shut = context.WithCancel(context.Background())
	return l
}

// Acquire waits for the lease of key, for as long as ctx and Options.MaxWait allow. The lease's Context is a child of
// ctx.
//
// The error is an ErrNotAcquired. If ctx ended, errors.Is holds for ctx.Err() as well. Acquire returns when ctx ends,
// and what the store may have granted is given back in the background. If ctx is cancelled, or the Locker closed, while
// a request to the store is under way, Acquire returns when the request is answered or timed out: after a third of the
// TTL, at least a second.
//
// Under the context of a lease on the same key, Acquire returns another lease on it at once. That is true for every
// goroutine that works under that context: they all hold the key together, and are not kept apart from each other.
func (l *Locker) Acquire(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, key, true)
}

// TryAcquire asks once. If another caller holds the key, or asks for it in this process, the error is ErrNotAcquired.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, key, false)
}

// Do runs fn while it holds the lease of key and releases it afterwards, also if fn panics. The ctx given to fn is the
// lease's: it ends with a cause the moment the lease can no longer be trusted, and fn should return then.
//
// The error is Acquire's, or fn's, or, where the lease was lost meanwhile, an ErrLost joined to fn's. An ErrLost does
// not mean that fn's work was undone: what it committed stays, and only fn knows. A key that cannot be given back at
// once, because the store does not answer, is no error: the release is retried in the background.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context, lease *Lease) error) error {
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer lease.Release() //nolint:errcheck // for a panic in fn; a second call does nothing
	err = fn(lease.Context(), lease)
	if lost := lease.Release(); errors.Is(lost, ErrLost) {
		return errors.Join(err, lost)
	}
	return err
}

// Close ends all waiting, and all leases with the cause ErrClosed, gives them back to the store, and closes the
// backend. It returns when that is done. Later calls wait for the first, and return what it does.
func (l *Locker) Close() error {
	l.closing.Do(func() {
		l.mu.Lock()
		l.shut()
		var waiting []*Lease
		for _, q := range l.queues {
			waiting = append(waiting, q.awaitedLocked()...)
			if q.tenure != nil {
				q.tenure.endLocked(ErrClosed)
			}
		}
		l.mu.Unlock()
		for _, lease := range waiting {
			lease.cancel(ErrClosed)
		}
		l.work.Wait()
		l.closed = l.backend.Close()
	})
	return l.closed
}

// Queued returns how many callers of this process wait in queues, for all keys together.
func (l *Locker) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, q := range l.queues {
		n += q.waiting.Len()
	}
	return n
}

// observe calls the Observer, if there is one. The Observer may panic: the caller does not hold mu, and has nothing
// left to undo.
func (l *Locker) observe(event func(Observer)) {
	if l.opt.Observer != nil {
		event(l.opt.Observer)
	}
}

// requestTimeout is the time limit of a request to the store.
func (l *Locker) requestTimeout() time.Duration { return max(l.opt.TTL/3, time.Second) }

// noAnswer adds ErrNoAnswer to the error of a request that timed out.
func noAnswer(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// release sends one request, whose time limit does not depend on a caller's context.
func (l *Locker) release(c Claim) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.requestTimeout())
	defer cancel()
	return noAnswer(ctx, l.backend.Release(ctx, c))
}

// releaseWithRetry releases, in the background, the key that the owner may hold, or its place in the store's queue. The
// caller may hold mu.
func (l *Locker) releaseWithRetry(c Claim) {
	l.work.Go(func() {
		if err := l.release(c); err != nil && !errors.Is(err, ErrLost) {
			l.retry(c)
		}
	})
}

// retry repeats a release until it succeeds or the lease's TTL has passed. One claim at a time is retried, so that a
// store that comes back after a failure does not get all of them at once.
func (l *Locker) retry(c Claim) {
	end := time.Now().Add(c.TTL)
	select {
	case l.retries <- struct{}{}:
		defer func() { <-l.retries }()
	case <-l.open.Done():
		return
	}
	for nap := 10 * time.Millisecond; time.Now().Before(end); nap = min(2*nap, time.Second) {
		if err := l.release(c); err == nil || errors.Is(err, ErrLost) {
			return
		}
		select {
		case <-time.After(nap):
		case <-l.open.Done():
			return
		}
	}
}
