package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxKey is how many bytes a key may have.
const MaxKey = 512

// Locker hands out leases on keys. It may be used by many goroutines at once; a process needs one for each store.
type Locker struct {
	opt     Options
	backend Backend

	open     context.Context // ends with Close
	shut     context.CancelFunc
	work     sync.WaitGroup // calls and background requests; added to only while mu is held, or by one of them
	closing  sync.Once
	closeErr error // of the backend

	mu       sync.Mutex        // never held during I/O, nor while user code runs
	queues   map[string]*queue // of the keys that this process holds or asks for
	draining bool              // no lease begins any more, but under the context of another one
	overdue  []overdue         // releases that have failed; releaseOverdue runs while there are any
}

// overdue is a release to be repeated until its lease has run out.
type overdue struct {
	claim Claim
	until time.Time
}

// Open returns a Locker over the backend, which the Locker closes in Close. The error names the option that is invalid.
func Open(b Backend, o Options) (*Locker, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	l := &Locker{opt: o, backend: b, queues: make(map[string]*queue)}
	l.open, l.shut = context.WithCancel(context.Background())
	return l, nil
}

// New is Open for options that are known to be valid: it panics where Open returns an error.
func New(b Backend, o Options) *Locker {
	l, err := Open(b, o)
	if err != nil {
		panic(err)
	}
	return l
}

// Acquire waits for the lease of key, for as long as ctx and Options.MaxWait allow. The lease's Context is a child of
// ctx.
//
// The error is an ErrNotAcquired. It is also an ErrTimeout if the time was over, whether MaxWait or the deadline of ctx
// has set it. If ctx ended, errors.Is also holds for ctx.Err(), and what the store may have granted is given back in the
// background. Acquire returns at once when ctx ends, but if ctx is cancelled, or the Locker closed, while a request to the
// store is under way, it returns when the request is answered or has timed out: after a third of the TTL, at least a
// second, and not after the deadline of ctx.
//
// Under the context of a lease on the same key, Acquire returns another lease on it at once. That is true for every
// goroutine that works under that context: they all hold the key together, and are not kept apart from each other.
func (l *Locker) Acquire(ctx context.Context, key string) (*Lease, error) {
	return l.newWaiter(ctx, key, true).acquire()
}

// TryAcquire asks once. If another caller holds the key, or asks for it in this process, the error is ErrHeld.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	return l.newWaiter(ctx, key, false).acquire()
}

// Do runs fn while it holds the lease of key and releases it afterwards, also if fn panics, together with all leases on the
// key that were taken under it. The ctx given to fn is the lease's: it ends with a cause the moment the lease can no longer
// be trusted, and fn should return then.
//
// The error is Acquire's, or fn's, or, where the lease was lost meanwhile, an ErrLost joined to fn's. An ErrLost does
// not mean that fn's work was undone: what it committed stays, and only fn knows. A key that cannot be given back at
// once, because the store does not answer, is no error: the release is retried in the background.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context, lease *Lease) error) (err error) {
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer func() { // also after a panic
		if lost := lease.releaseAll(); errors.Is(lost, ErrLost) {
			err = errors.Join(err, lost)
		}
	}()
	return fn(lease.Context(), lease)
}

// Holder describes the holder of a key, as the store has it.
type Holder struct {
	Identity  string        // Options.Identity of the Locker; empty if it has none
	Owner     string        // random, for one acquisition; empty: the key is free
	Since     time.Time     // of the grant, about, by the store's clock; zero if the store does not know
	Remaining time.Duration // of the lease if it is not renewed any more; 0 if the store does not know
}

// Holder returns who holds the key, in whichever process; the zero Holder if it is free. It is true for the moment in
// which the store was asked: for people and logs, not for decisions.
func (l *Locker) Holder(ctx context.Context, key string) (Holder, error) {
	return l.inspect(ctx, key, "holder", false)
}

// ForceRelease takes the key from its holder, and returns whom it was taken from; the zero Holder if the key was free.
// It is for operators: the holder finds out with its next renewal, after a third of its TTL or so, and acts until
// then. A database that compares fences refuses its writes as soon as the next holder has written: the next fence is
// higher than any that the holder can have used. ErrLost: the holder has released the key meanwhile.
func (l *Locker) ForceRelease(ctx context.Context, key string) (Holder, error) {
	return l.inspect(ctx, key, "force release", true)
}

func (l *Locker) inspect(ctx context.Context, key, doing string, evict bool) (h Holder, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("lock %q: %s: %w", key, doing, err)
		}
	}()
	if err := checkKey(key); err != nil {
		return h, err
	}
	l.mu.Lock()
	if l.open.Err() != nil {
		l.mu.Unlock()
		return h, ErrClosed
	}
	l.work.Add(1)
	l.mu.Unlock()
	defer l.work.Done()
	ctx, cancel := context.WithTimeout(ctx, l.requestTimeout())
	defer cancel()
	h, err = l.backend.Holder(ctx, key)
	if err == nil && h.Owner != "" {
		if readable, _, found := strings.Cut(h.Owner[strings.IndexByte(h.Owner, ':')+1:], "/"); found {
			h.Identity = readable // "shop-1" of "shop-1/<random>", or, in Redis, of "<process>:shop-1/<random>"
		}
		if evict {
			err = l.backend.Evict(ctx, key, h.Owner)
		}
	}
	return h, noAnswer(ctx, err)
}

// Shutdown ends all waiting with ErrClosed, waits until each lease is released by its holder, and then does what Close
// does. Meanwhile leases are renewed. If ctx ends first, Shutdown does not wait any longer; its error is then also ctx's,
// and names the keys that are held.
func (l *Locker) Shutdown(ctx context.Context) error {
	l.drain()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for keys := l.held(); len(keys) > 0; keys = l.held() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("lock: shutdown: still held: %q: %w", keys, context.Cause(ctx)), l.Close())
		}
	}
	return l.Close()
}

// held returns the keys that are held, in sorted order.
func (l *Locker) held() (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, q := range l.queues {
		if q.tenure != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// drain ends all waiting.
func (l *Locker) drain() {
	l.mu.Lock()
	l.draining = true
	var waiting []*Lease
	for _, q := range l.queues {
		if q.asking != nil {
			waiting = append(waiting, q.asking.lease)
		}
		for e := q.waiting.Front(); e != nil; e = e.Next() {
			waiting = append(waiting, e.Value.(*waiter).lease)
		}
	}
	l.mu.Unlock()
	for _, e := range waiting {
		e.cancel(ErrClosed) // which may run code of the caller's context
	}
}

// Close ends all waiting, and all leases with the cause ErrClosed, also of holders that are at work: Shutdown waits for
// them. It gives the keys back to the store, closes the backend, and returns when that is done. Later calls wait for the
// first, and return what it does.
func (l *Locker) Close() error {
	l.closing.Do(func() {
		l.drain()
		l.mu.Lock()
		l.shut()
		for _, q := range l.queues {
			if q.tenure != nil {
				q.tenure.endLocked(ErrClosed)
			}
		}
		l.mu.Unlock()
		l.work.Wait()
		l.closeErr = l.backend.Close()
	})
	return l.closeErr
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

// requestTimeout is the time limit of a request to the store.
func (l *Locker) requestTimeout() time.Duration { return max(l.opt.TTL/3, time.Second) }

// noAnswer adds ErrNoAnswer to the error of a request that timed out. The clock is asked and not ctx, whose timer may be
// later than that of a connection with the same deadline.
func noAnswer(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(deadline) {
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

// releaseLate releases again, a few times until the end of a request's own time: the request has ended before, with its
// caller's time, and may reach the store after a release.
func (l *Locker) releaseLate(c Claim, end time.Time) {
	l.work.Go(func() {
		for nap := shortest; l.open.Err() == nil && time.Now().Before(end); nap *= 2 {
			sleep(l.open, min(nap, time.Until(end)))
			_ = l.release(c)
		}
	})
}

// retry has a release repeated, in the background, until it succeeds or the lease's TTL has passed. It is called by what
// l.work counts.
func (l *Locker) retry(c Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.overdue) < 10_000 { // the keys of others are free when their TTL has passed
		l.overdue = append(l.overdue, overdue{c, time.Now().Add(c.TTL)})
	}
	if len(l.overdue) == 1 {
		l.work.Go(l.releaseOverdue)
	}
}

// releaseOverdue repeats the failed releases, one at a time, so that a store that comes back after a failure does not get
// all of them at once. The Locker's end ends it.
func (l *Locker) releaseOverdue() {
	const shortNap = 10 * time.Millisecond
	nap := shortNap
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.overdue) > 0 {
		next := l.overdue[0] // it stays in the list until it is done
		l.mu.Unlock()
		done := l.open.Err() != nil || !time.Now().Before(next.until)
		if !done {
			err := l.release(next.claim)
			if done = err == nil || errors.Is(err, ErrLost); done {
				nap = shortNap
			} else {
				sleep(l.open, nap)
				nap = min(2*nap, time.Second)
			}
		}
		l.mu.Lock()
		l.overdue = l.overdue[1:]
		if !done {
			l.overdue = append(l.overdue, next)
		}
	}
}

// sleep returns when d has passed, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
