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

// MaxKey is the greatest length of a key, in bytes.
const MaxKey = 512

// Locker hands out leases on keys. It may be used by many goroutines at once. A process needs one Locker for each store.
type Locker struct {
	opt     Options
	backend Backend

	open     context.Context // ends with Close
	shut     context.CancelFunc
	work     sync.WaitGroup // calls and background requests; added to while mu is held, or by one of them
	closing  sync.Once
	closeErr error // of closing the backend

	mu       sync.Mutex        // never held during I/O, nor while user code runs
	queues   map[string]*queue // of the keys that this process holds or asks for
	draining bool              // no lease begins any more, except under the context of another lease
	overdue  []overdue         // releases that have failed; releaseOverdue runs while there are any
}

// overdue is a release that is repeated until its lease has run out.
type overdue struct {
	claim Claim
	until time.Time
}

// Open returns a Locker over the backend, which the Locker closes in Close. The error names the invalid option.
func Open(b Backend, o Options) (*Locker, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	l := &Locker{opt: o, backend: b, queues: make(map[string]*queue)}
	l.open, l.shut = context.WithCancel(context.Background())
	return l, nil
}

// New is like Open, for options that are known to be valid: it panics if Open returns an error.
func New(b Backend, o Options) *Locker {
	l, err := Open(b, o)
	if err != nil {
		panic(err)
	}
	return l
}

// Acquire waits for the lease of key, as long as ctx and Options.MaxWait allow. The lease's Context is a child of ctx.
//
// The error is an ErrNotAcquired. It is also an ErrTimeout if the wait exceeded MaxWait or the deadline of ctx. If ctx
// ended, errors.Is also holds for ctx.Err(), and a lease that the store may have granted is released in the background.
// Acquire returns at once when ctx ends, with one exception: if ctx is cancelled, or the Locker closed, during a
// request to the store, Acquire returns when the request is answered or has timed out. A request times out after a
// third of the TTL, at least a second, and not after the deadline of ctx.
//
// Under the context of a lease on the same key, Acquire returns another lease on the key at once. This is true for every
// goroutine under that context: they hold the key together, and the lock does not exclude one from another.
func (l *Locker) Acquire(ctx context.Context, key string) (*Lease, error) {
	return l.newWaiter(ctx, key, true).acquire()
}

// TryAcquire asks once. If another caller holds the key, or asks for it in this process, the error is ErrHeld.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	return l.newWaiter(ctx, key, false).acquire()
}

// Do runs fn while it holds the lease of key. Afterwards, even if fn panics, Do releases the lease and all leases on
// the key that were taken under it. The ctx given to fn is the lease's. It ends with a cause the moment the lease can
// no longer be trusted; then fn should return.
//
// Do returns the error of Acquire or of fn. If the lease was lost meanwhile, an ErrLost is joined to fn's error. An ErrLost
// does not mean that fn's work was undone: its commits stay, and only fn knows of them. If the store does not answer the
// release, this is not an error: the release is repeated in the background.
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

// Holder describes the holder of a key, as the store knows it.
type Holder struct {
	Identity  string        // Options.Identity of the Locker; empty if it has none
	Owner     string        // random, for one acquisition; empty: the key is free
	Since     time.Time     // approximate time of the grant, by the store's clock; zero if the store does not know
	Remaining time.Duration // of the lease if it is not renewed any more; 0 if the store does not know
}

// Holder returns the holder of the key, in any process, or the zero Holder if the key is free. The answer describes the
// moment in which the store was asked. It is for people and logs, not for decisions.
func (l *Locker) Holder(ctx context.Context, key string) (Holder, error) {
	return l.inspect(ctx, key, "holder", false)
}

// ForceRelease takes the key from its holder, and returns that holder, or the zero Holder if the key was free. It is for
// operators: the holder notices at its next renewal, after about a third of its TTL, and acts until then. A database that
// compares fences refuses the holder's writes as soon as the next holder has written, because the next fence is higher than
// any that the holder can have used. ErrLost: the holder has released the key meanwhile.
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

// Shutdown ends all waits with ErrClosed, waits until each holder has released its lease, and then closes the Locker.
// Meanwhile it renews the leases. If ctx ends first, Shutdown closes the Locker at once; its error then wraps the cause
// of ctx, and names the keys that are still held.
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

// held returns the held keys, sorted.
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

// drain ends all waits.
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
		e.cancel(ErrClosed) // without mu: it may run code of the caller's context
	}
}

// Close ends all waits, and ends all leases with the cause ErrClosed, even if their holders are at work. (Shutdown
// waits for holders.) It releases the keys in the store, closes the backend, and returns when all is done. Later calls
// wait for the first, and return its result.
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

// Queued returns the number of callers of this process that wait in queues, for all keys together.
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

// noAnswer adds ErrNoAnswer to the error of a request that timed out. It asks the clock and not ctx: the timer of ctx
// may fire later than the timer of a connection with the same deadline.
func noAnswer(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(deadline) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// release sends one request. Its time limit does not depend on a caller's context.
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

// releaseLate repeats a release a few times, until the end of a request's time limit. The request has ended earlier, at its
// caller's deadline, and may reach the store after a release.
func (l *Locker) releaseLate(c Claim, end time.Time) {
	l.work.Go(func() {
		for nap := shortest; l.open.Err() == nil && time.Now().Before(end); nap *= 2 {
			sleep(l.open, min(nap, time.Until(end)))
			_ = l.release(c)
		}
	})
}

// retry repeats a release, in the background, until it succeeds or the lease's TTL has passed. l.work counts the caller.
func (l *Locker) retry(c Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.overdue) < 10_000 { // further keys become free when their TTL has passed
		l.overdue = append(l.overdue, overdue{c, time.Now().Add(c.TTL)})
	}
	if len(l.overdue) == 1 {
		l.work.Go(l.releaseOverdue)
	}
}

// releaseOverdue repeats the failed releases, one at a time, so that a store that works again does not get all of them at
// once. It ends when the Locker closes.
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

// sleep returns when d has passed or ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
