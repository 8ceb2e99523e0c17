package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

	open context.Context // ends with Close
	shut context.CancelFunc
	work sync.WaitGroup // calls and background releases under way

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
		lines:   make(map[string]*line),
	}
}

// Acquire waits for the lease of key, for as long as ctx and Options.MaxWait
// allow. The lease's Context is a child of ctx.
//
// The error is an ErrNotAcquired. If ctx ended, errors.Is holds for ctx.Err()
// as well, and whatever the store may have granted is given back in the
// background.
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
// ErrLost joined to fn's. A key that cannot be given back at once, because the
// store does not answer, is no error: that goes on in the background.
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
// back to the store, and closes the backend. It returns when that is done.
func (l *Locker) Close() error {
	l.mu.Lock()
	if l.closed() {
		l.mu.Unlock()
		return nil
	}
	l.shut()
	for _, q := range l.lines {
		if q.held != nil {
			q.held.end(ErrClosed)
		}
	}
	l.mu.Unlock()
	l.work.Wait()
	return l.backend.Close()
}

func (l *Locker) acquire(ctx context.Context, key string, wait bool) (*Lease, error) {
	if key == "" || len(key) > MaxKey || key[0] == '}' {
		return nil, notAcquired(key, fmt.Errorf("%w: want 1 to %d bytes, the first no closing brace", ErrKey, MaxKey))
	}
	if ctx.Err() != nil {
		return nil, notAcquired(key, ended(ctx))
	}
	l.mu.Lock()
	if l.closed() {
		l.mu.Unlock()
		return nil, notAcquired(key, ErrClosed)
	}
	if lease := l.again(ctx, key); lease != nil {
		l.mu.Unlock()
		return lease, nil
	}
	l.work.Add(1)
	defer l.work.Done()

	bounded, cancel := l.bound(ctx)
	defer cancel()
	q := l.lines[key]
	if q == nil {
		q = &line{key: key}
		l.lines[key] = q
		l.mu.Unlock()
		return l.contend(ctx, bounded, q, wait)
	}
	if !wait {
		l.mu.Unlock()
		return nil, notAcquired(key, nil)
	}
	if q.waiting.Len() >= l.opt.MaxQueue {
		l.mu.Unlock()
		return nil, notAcquired(key, ErrQueueFull)
	}
	w := q.join(ctx)
	l.mu.Unlock()
	return l.await(ctx, bounded, q, w)
}

func (l *Locker) closed() bool { return l.open.Err() != nil }

// bound limits a wait to MaxWait.
func (l *Locker) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.opt.MaxWait < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, l.opt.MaxWait, ErrTimeout)
}

// gaveUp is the error of a caller that stopped waiting.
func (l *Locker) gaveUp(ctx context.Context, key string) error {
	switch {
	case ctx.Err() != nil:
		return notAcquired(key, ended(ctx))
	case l.closed():
		return notAcquired(key, ErrClosed)
	}
	return notAcquired(key, ErrTimeout)
}

// background runs fn in a goroutine that Close waits for. Its caller is counted
// in l.work itself, or holds l.mu while the Locker is open.
func (l *Locker) background(fn func()) { l.work.Go(fn) }

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
