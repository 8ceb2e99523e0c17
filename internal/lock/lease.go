package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Lease is the right to act on a key, until Release or until its context ends. It may be used by many goroutines at once.
//
// A lease is not exclusion: a process that was paused can act after its lease has passed to another process. A write is
// safe if the database compares the lease's Fence in the same transaction.
type Lease struct {
	locker *Locker
	key    string
	ctx    context.Context
	cancel context.CancelCauseFunc

	tenure *tenure // set once, when the lease is granted
	parent *Lease  // under whose context this lease was taken; nil for the first lease of a holder
	fence  int64   // guarded by Locker.mu
	done   bool    // no further lease is taken under this one; guarded by Locker.mu

	release sync.Once
	err     error // of Release
}

// leaseKey is the context key of the latest lease of one Locker on a key.
type leaseKey struct {
	locker *Locker
	key    string
}

// Key returns the locked key.
func (e *Lease) Key() string { return e.key }

// Context returns a child of the context given to Acquire. It ends when the lease ends. If a holder has taken the key
// several times, the context of the first lease ends with the last. context.Cause is then an ErrReleased, ErrLost or
// ErrClosed, or the cause of the ctx given to Acquire. All code under this context counts as the holder of the key: see
// Locker.Acquire.
func (e *Lease) Context() context.Context { return e.ctx }

// Fence returns the fencing token, higher than the token of every earlier lease on the key; 0 if the backend mints none.
func (e *Lease) Fence() int64 {
	e.locker.mu.Lock()
	defer e.locker.mu.Unlock()
	return e.fence
}

// Remaining returns the time for which the lease is trusted if it is not renewed any more, or 0 if the lease is over. It
// reads the monotonic clock. So it notices, even before the context ends, that the lease ran out while the process was
// paused. It does not notice a suspended machine whose clock stood still, as on Linux. Call it last before a commit.
func (e *Lease) Remaining() time.Duration {
	e.locker.mu.Lock()
	defer e.locker.mu.Unlock()
	if !e.currentLocked() {
		return 0
	}
	return max(0, time.Until(e.tenure.deadline))
}

// currentLocked reports whether the lease can be trusted.
func (e *Lease) currentLocked() bool {
	return slices.Contains(e.tenure.leases, e) && e.tenure.liveLocked()
}

// Raise lifts the lease's fence above a number that the guarded resource has already seen. It is needed if the store's
// clock stepped back and the store mints lower numbers than before: the package comment has the cases. The store checks
// that the lease is still held: if the caller has lost it, the error is ErrLost and the fence stays. After Raise, read
// the rows again that you are about to write, because another process may have written meanwhile.
//
// A number that leaves no room for later fences is refused: 1<<52 or more in Redis, whose scripts count in doubles, and
// 1<<62 or more in any store.
func (e *Lease) Raise(ctx context.Context, above int64) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("lock %q: raise fence above %d: %w", e.key, above, err)
		}
	}()
	l, t := e.locker, e.tenure
	l.mu.Lock()
	c, current := t.claim, e.currentLocked()
	if current {
		l.work.Add(1)
		defer l.work.Done()
	}
	l.mu.Unlock()
	switch {
	case !current:
		return ErrLost
	case c.Fence == 0:
		return errors.New("the backend mints no fences")
	case above >= 1<<62:
		return errors.New("out of range")
	}
	c.Fence = max(c.Fence, above) + 1
	sent := time.Now()
	fence, err := t.ask(ctx, c)

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && !e.currentLocked():
		return ErrLost
	case err == nil:
		t.extendLocked(sent)
		t.claim.Fence = max(t.claim.Fence, fence)
		for _, e := range t.leases {
			e.fence = t.claim.Fence
		}
	case errors.Is(err, ErrLost) && !t.over:
		t.endLocked(ErrLost)
	}
	return err
}

// Release passes the key to the next waiting caller. It works even after the end of any context, and takes a bounded time.
// ErrLost: the lease was already over. Calling it again does nothing and returns the first result.
//
// If the holder has taken the key several times, the last release frees the key.
func (e *Lease) Release() error {
	e.release.Do(e.doRelease)
	return e.err
}

// releaseAll releases the lease and all leases that were taken under it. No further lease can be taken under it.
func (e *Lease) releaseAll() error {
	var under Leases
	e.locker.mu.Lock()
	e.done = true
	for _, inner := range e.tenure.leases {
		for parent := inner.parent; parent != nil; parent = parent.parent {
			if parent == e {
				inner.done = true
				under.leases = append(under.leases, inner)
			}
		}
	}
	e.locker.mu.Unlock()
	_ = under.Release() // frees no key: e is still held, or all leases are lost
	return e.Release()
}

// doRelease ends the lease, passes the key on, and sets err.
func (e *Lease) doRelease() {
	l, t := e.locker, e.tenure
	l.mu.Lock()
	first, held := t.first, time.Since(t.entered)
	if !t.over {
		t.leases = slices.DeleteFunc(t.leases, func(other *Lease) bool { return other == e })
		if len(t.leases) == 0 && !t.liveLocked() {
			t.endLocked(ErrLost) // the lease has run out
		}
	}
	switch {
	case t.over:
		cause := t.cause
		l.mu.Unlock()
		e.err = fmt.Errorf("lock %q: release: %w", e.key, ErrLost)
		e.cancel(cause)
		return
	case len(t.leases) > 0:
		l.mu.Unlock()
		if e != first { // the contexts of the other leases are children of the first one's
			e.cancel(ErrReleased)
		}
		return
	}
	handedOver := t.handOverLocked()
	if !handedOver {
		t.closeLocked()
		l.work.Add(1)
	}
	c := t.claim
	l.mu.Unlock()
	first.cancel(ErrReleased)
	e.cancel(ErrReleased) // its context may not be a child of the first one's
	if !handedOver {
		if err := l.release(c); err != nil {
			e.err = fmt.Errorf("lock %q: release: %w", e.key, err)
			if !errors.Is(err, ErrLost) {
				l.retry(c)
			}
		}
		l.mu.Lock()
		l.wakeNextLocked(t.queue, "")
		l.mu.Unlock()
		l.work.Done()
	}
	if told := l.opt.Observer.Held; told != nil {
		told(e.key, held)
	}
}

// Leases are the leases on several keys, taken together.
type Leases struct {
	leases []*Lease
	ctx    context.Context
}

// AcquireAll waits for the leases of all keys, all or none. Duplicates count once. It asks for all keys at once. If
// some keys are held, AcquireAll keeps the leases of the keys that sort before the first held key, and releases the
// others. Then it acquires the rest one after the other, in sorted order, so that two callers that hold no other key
// never wait for each other. In a Cluster, the keys may be in different slots. Each key has its own MaxWait.
//
// The error is the error of Acquire for the key that failed.
func (l *Locker) AcquireAll(ctx context.Context, keys ...string) (*Leases, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	if len(keys) == 0 {
		return nil, fmt.Errorf("lock: %w: %w: want at least one", ErrNotAcquired, ErrKey)
	}
	all := &Leases{ctx: ctx}
	var err error
	if len(keys) > 1 {
		err = all.tryAll(l, keys)
	}
	for err == nil && len(all.leases) < len(keys) {
		var lease *Lease
		if lease, err = l.Acquire(all.ctx, keys[len(all.leases)]); err == nil {
			all.add(lease)
		}
	}
	if err != nil {
		_ = all.Release()
		return nil, err
	}
	return all, nil
}

// AcquireWith waits for the lease of a key, as Acquire does, and then takes the leases of those other keys that are
// free. It asks for the others at once and does not wait for them, so that it holds no key while it waits for another.
// Leases.Context is the context of the first key's lease.
func (l *Locker) AcquireWith(ctx context.Context, key string, others ...string) (*Leases, error) {
	first, err := l.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	tries := make([]*Lease, len(others))
	together(len(others), func(i int) { tries[i], _ = l.TryAcquire(ctx, others[i]) }) // nil after an error
	taken := slices.DeleteFunc(tries, func(e *Lease) bool { return e == nil })
	return &Leases{leases: append(taken, first), ctx: first.Context()}, nil
}

// tryAll asks for all keys at once, and keeps the leases of the keys before the first held one. The error is never ErrHeld.
func (a *Leases) tryAll(l *Locker, keys []string) (err error) {
	tries, errs := make([]*waiter, len(keys)), make([]error, len(keys))
	ctx := a.ctx
	for i, key := range keys {
		tries[i] = l.newWaiter(ctx, key, false)
		ctx = tries[i].lease.ctx //nolint:fatcontext // each is a child of the one before, as in add
	}
	together(len(keys), func(i int) { _, errs[i] = tries[i].acquire() })
	var others Leases
	for i, w := range tries {
		switch {
		case err == nil && errs[i] == nil:
			a.add(w.lease)
		case err == nil:
			err = errs[i]
		case errs[i] == nil:
			others.add(w.lease)
		}
	}
	_ = others.Release()
	if errors.Is(err, ErrHeld) {
		return nil
	}
	return err
}

// add adds a lease. Its context is a child of the context before, so that the last context ends with any of them.
func (a *Leases) add(lease *Lease) { a.leases, a.ctx = append(a.leases, lease), lease.Context() }

// Context ends when any of the leases ends.
func (a *Leases) Context() context.Context { return a.ctx }

// Lease returns the lease on one of the keys, or nil for any other key.
func (a *Leases) Lease(key string) *Lease {
	for _, e := range a.leases {
		if e.key == key {
			return e
		}
	}
	return nil
}

// Fence returns the fence of the lease on one of the keys, or 0 for any other key.
func (a *Leases) Fence(key string) int64 {
	if e := a.Lease(key); e != nil {
		return e.Fence()
	}
	return 0
}

// Release releases all leases at the same time, as Lease.Release does. Its error joins the errors of the leases.
func (a *Leases) Release() error {
	errs := make([]error, len(a.leases))
	together(len(errs), func(i int) { errs[i] = a.leases[i].Release() })
	return errors.Join(errs...)
}

// together calls f for 0 to n-1 at the same time, and returns when all calls have returned.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
