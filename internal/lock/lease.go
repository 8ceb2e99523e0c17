package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease is the right to act on a key, until Release or until its context ends.
// It may be used by many goroutines at once.
//
// A lease is not exclusion: a process that was paused can act after its lease
// has passed to somebody else. What makes a write safe is its Fence, compared by
// the database in the same transaction.
type Lease struct {
	holding *holding
	ctx     leaseContext
	cancel  context.CancelCauseFunc

	// Guarded by Locker.mu.
	fence int64
	owner string              // from WithOwner
	root  *Lease              // of a lease taken again by its holder: the first; else itself
	again map[*Lease]struct{} // of a root: those taken again and not yet released; nil until there is one
	done  bool                // Release was called

	settled bool          // Release has returned
	err     error         // with this
	told    chan struct{} // closed then; nil if no second call waits for it
}

// Key returns the key that is locked.
func (e *Lease) Key() string { return e.holding.line.key }

// Context returns a child of the context given to Acquire. It ends when the
// lease ends: context.Cause is then an ErrReleased, ErrLost or ErrClosed.
func (e *Lease) Context() context.Context { return &e.ctx }

// Fence returns the lease's fencing token: higher than that of every earlier
// lease on the key. It is 0 if the backend mints none.
func (e *Lease) Fence() int64 {
	e.holding.locker.mu.Lock()
	defer e.holding.locker.mu.Unlock()
	return e.root.fence
}

// Remaining returns for how long the lease is trusted if it is not renewed any
// more, 0 if it is over. It reads the clock, and so knows that the lease ran out
// while the process was paused, even before the context does. Ask it last
// before a commit.
func (e *Lease) Remaining() time.Duration {
	h := e.holding
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	if !e.current() {
		return 0
	}
	return max(0, time.Until(h.until()))
}

// current reports whether e is a lease that its holding still gives. The caller
// holds Locker.mu.
func (e *Lease) current() bool {
	return !e.done && !e.holding.over && e.holding.lease == e.root
}

// Raise lifts the lease's fence above a number that the guarded resource has
// seen already. That is needed when the store's clock stepped back, so that it mints
// lower numbers than before: the package comment says when. The store checks that
// the lease is still held: one who lost it gets ErrLost and no number. Read
// again what you are about to write: somebody else may have written meanwhile.
//
// A number that leaves no room for those to come is refused: one of 1<<52 or more
// in Redis, whose scripts count in doubles, and of 1<<62 or more anywhere.
func (e *Lease) Raise(ctx context.Context, above int64) error {
	h := e.holding
	l := h.locker
	l.mu.Lock()
	if !e.current() {
		l.mu.Unlock()
		return fmt.Errorf("lock %q: %w", e.Key(), ErrLost)
	}
	if h.fence == 0 {
		l.mu.Unlock()
		return fmt.Errorf("lock %q: the backend mints no fences", e.Key())
	}
	if above >= 1<<62 {
		l.mu.Unlock()
		return fmt.Errorf("lock %q: raise fence above %d: out of range", e.Key(), above)
	}
	l.work.Add(1)
	defer l.work.Done()
	c := h.claim
	c.Fence = max(h.fence, above) + 1
	l.mu.Unlock()

	sent := time.Now()
	fence, err := h.ask(ctx, c)

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && !e.current():
		err = ErrLost
	case err == nil:
		h.extend(sent)
		h.fence = max(h.fence, fence)
		e.root.fence = h.fence
		return nil
	case errors.Is(err, ErrLost) && !h.over:
		h.end(ErrLost)
	}
	return fmt.Errorf("lock %q: raise fence above %d: %w", e.Key(), above, err)
}

// Release gives the key to the next who waits for it. It works whatever became
// of any context, and takes at most a bounded time. ErrLost: the lease was over
// before. Calling it again does nothing and returns what the first call did.
//
// A key that its holder has taken several times is free after the last release.
func (e *Lease) Release() error {
	l := e.holding.locker
	l.mu.Lock()
	if e.done {
		return e.settlement()
	}
	e.done = true
	err := e.release()
	if err != nil {
		err = fmt.Errorf("lock %q: release: %w", e.Key(), err)
	}
	e.settled, e.err = true, err
	if e.told != nil {
		close(e.told)
	}
	l.mu.Unlock()
	return err
}

// settlement returns what the first call of Release returns, when it does. The
// caller holds Locker.mu, and no longer afterwards.
func (e *Lease) settlement() error {
	l := e.holding.locker
	if !e.settled && e.told == nil {
		e.told = make(chan struct{})
	}
	settled, told := e.settled, e.told
	l.mu.Unlock()
	if !settled {
		<-told
	}
	return e.err
}

// release does it. The caller holds Locker.mu, which is not held during I/O.
func (e *Lease) release() error {
	h := e.holding
	l := h.locker
	if h.over {
		return ErrLost
	}
	if e != e.root {
		delete(e.root.again, e)
		e.cancel(ErrReleased)
	}
	if !e.root.done || len(e.root.again) > 0 {
		return nil
	}
	if !time.Now().Before(h.until()) { // the alarm is late
		h.end(ErrLost)
		return ErrLost
	}
	held := time.Since(h.entered)
	handed := h.handOver()
	if !handed {
		h.close()
		l.work.Add(1)
		defer l.work.Done()
	}
	c := h.claim
	c.Fence = h.fence
	l.mu.Unlock()
	e.root.cancel(ErrReleased)
	l.observe(func(o Observer) { o.Held(c.Key, held) })
	if handed {
		l.observe(func(o Observer) { o.HandedOver(c.Key) })
		l.mu.Lock()
		return nil
	}
	err := l.release(c)
	l.mu.Lock()
	if err != nil && !errors.Is(err, ErrLost) {
		l.background(func() { l.giveBack(c) })
	}
	l.advance(h.line)
	return err
}
