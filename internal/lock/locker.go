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

// Locker hands out leases on keys. It may be used by many goroutines at once;
// a process needs one for each store. Within a process, callers that want the
// same key stand in one line, first come first served, and only the first of
// them asks the store.
type Locker struct {
	backend Backend
	opt     Options

	open   context.Context // ends with Close
	shut   context.CancelFunc
	work   sync.WaitGroup // calls and background releases under way
	ended  chan struct{}  // closed when Close has done all
	result error          // of Close, then

	deadlines alarms // of leases
	renewals  alarms
	requests  alarms // that wait for an answer
	waits     alarms // of callers, for MaxWait

	mu    sync.Mutex       // never held during I/O
	lines map[string]*line // keys that this process holds or asks for
}

// New returns a Locker over the backend, which it closes in Close. It panics if
// o is invalid; see Options.Validate.
func New(b Backend, o Options) *Locker {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	open, shut := context.WithCancel(context.Background())
	return &Locker{
		backend: b,
		opt:     o.withDefaults(),
		open:    open,
		shut:    shut,
		ended:   make(chan struct{}),
		lines:   make(map[string]*line),
	}
}

// Acquire waits for the lease of key, for as long as ctx and Options.MaxWait
// allow. The lease's Context is a child of ctx.
//
// The error is an ErrNotAcquired. If ctx ended, errors.Is holds for ctx.Err()
// as well, and whatever the store may have granted is given back in the
// background. Acquire returns when ctx does, with one exception: while the store
// is being asked and ctx, far from its deadline, is cancelled. Then it returns
// with the store's answer, or after a third of the TTL (a second, if that is
// longer), whichever comes first.
func (l *Locker) Acquire(ctx context.Context, key string) (*Lease, error) {
	return l.observed(ctx, key, true)
}

// TryAcquire asks once. If somebody else holds the key, or asks for it in this
// process, the error is ErrNotAcquired.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	return l.observed(ctx, key, false)
}

// Do runs fn while it holds the lease of key and releases it afterwards, also
// if fn panics. The ctx given to fn is the lease's: it ends with a cause the
// moment the lease can no longer be trusted, and fn should return then.
//
// The error is Acquire's, or fn's, or, where the lease was lost meanwhile, an
// ErrLost joined to fn's. An ErrLost does not mean that fn's work was undone: what
// it committed stays, and fn alone can tell. A key that cannot be given back at once,
// because the store does not answer, is no error: that goes on in the background.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context, lease *Lease) error) error {
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer lease.Release() //nolint:errcheck // for a panic in fn; the second call tells what the first did
	err = fn(lease.Context(), lease)
	if lost := lease.Release(); errors.Is(lost, ErrLost) {
		return errors.Join(err, lost)
	}
	return err
}

// Close ends all waiting, and all leases with the cause ErrClosed, gives them
// back to the store, and closes the backend. It returns when that is done. Later
// calls wait for the first, and return what it does.
func (l *Locker) Close() error {
	l.mu.Lock()
	if l.closed() {
		l.mu.Unlock()
		<-l.ended
		return l.result
	}
	l.shut()
	for _, q := range l.lines {
		q.close()
	}
	l.mu.Unlock()
	l.work.Wait()
	for _, a := range []*alarms{&l.deadlines, &l.renewals, &l.requests, &l.waits} {
		a.stop()
	}
	l.result = l.backend.Close()
	close(l.ended)
	return l.result
}

func (l *Locker) acquire(ctx context.Context, key string, wait bool) (*Lease, error) {
	if key == "" || len(key) > MaxKey || key[0] == '}' {
		return nil, notAcquired(key, fmt.Errorf("%w: want 1 to %d bytes, the first no closing brace", ErrKey, MaxKey))
	}
	c := caller{ctx: ctx, wait: wait}
	if l.opt.MaxWait >= 0 {
		c.until = time.Now().Add(l.opt.MaxWait)
	}
	l.mu.Lock()
	if err := l.over(c); err != nil {
		l.mu.Unlock()
		return nil, notAcquired(key, err)
	}
	if lease := l.again(ctx, key); lease != nil {
		l.mu.Unlock()
		return lease, nil
	}
	l.work.Add(1)
	defer l.work.Done()

	q := l.lines[key]
	if q == nil {
		q = &line{key: key}
		l.lines[key] = q
		l.mu.Unlock()
		return l.contend(c, q)
	}
	if !wait {
		l.mu.Unlock()
		return nil, notAcquired(key, nil)
	}
	if q.waiting.Len() >= l.opt.MaxQueue {
		l.mu.Unlock()
		return nil, notAcquired(key, ErrQueueFull)
	}
	w := q.join(c)
	l.mu.Unlock()
	return l.await(q, w)
}

func (l *Locker) closed() bool { return l.open.Err() != nil }

// caller is one call of Acquire or TryAcquire.
type caller struct {
	ctx   context.Context
	wait  bool
	until time.Time // MaxWait from its beginning; zero: no limit
}

// end returns when its wait ends at the latest; not ok: never.
func (c caller) end() (end time.Time, ok bool) {
	end, ok = c.ctx.Deadline()
	if !c.until.IsZero() && (!ok || c.until.Before(end)) {
		return c.until, true
	}
	return end, ok
}

// over returns why the caller waits no longer, or nil.
func (l *Locker) over(c caller) error {
	if c.ctx.Err() != nil {
		return ended(c.ctx)
	}
	if l.closed() {
		return ErrClosed
	}
	end, ok := c.end()
	switch {
	case !ok || time.Now().Before(end):
		return nil
	case end.Equal(c.until):
		return ErrTimeout
	}
	return context.DeadlineExceeded // its timer is late
}

// background runs fn in a goroutine that Close waits for. Its caller is counted
// in l.work itself, or holds l.mu while the Locker is open.
func (l *Locker) background(fn func()) { l.work.Go(fn) }

// Queued returns how many callers of this process stand in line, for all keys
// together.
func (l *Locker) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, q := range l.lines {
		n += q.waiting.Len()
	}
	return n
}

// Waiting returns how many callers of this process stand in line for the key.
// The one who holds it, or asks the store for it, is not counted.
func (l *Locker) Waiting(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.lines[key]; q != nil {
		return q.waiting.Len()
	}
	return 0
}
