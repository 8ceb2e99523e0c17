package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// acquire is one call of Acquire or TryAcquire.
func (l *Locker) acquire(ctx context.Context, key string, wait bool) (*Lease, error) {
	began, w, returning := time.Now(), l.newWaiter(ctx, key, wait), false
	defer func() {
		w.stop()
		switch {
		case w.lease.tenure == nil:
			w.lease.cancel(nil)
		case !returning: // the Observer panicked: nothing gets the lease
			_ = w.lease.Release()
		}
	}()
	err := l.obtain(w)
	switch {
	case errors.Is(err, ErrNotAcquired):
		err = fmt.Errorf("lock %q: %w", key, err)
	case err != nil:
		err = fmt.Errorf("lock %q: %w: %w", key, ErrNotAcquired, err)
	}
	l.observe(func(o Observer) { o.Waited(key, time.Since(began), err) })
	if returning = true; err != nil {
		return nil, err
	}
	return w.lease, nil
}

// obtain gets the waiter its lease: it waits in the process for the turn, and then asks the store.
func (l *Locker) obtain(w *waiter) error {
	key := w.lease.key
	if key == "" || len(key) > MaxKey || key[0] == '}' {
		return fmt.Errorf("%w: want 1 to %d bytes, the first no closing brace", ErrKey, MaxKey)
	}
	if err := w.reason(); err != nil {
		return err
	}
	outer, _ := w.caller.Value(leaseKey{l, key}).(*Lease)
	l.mu.Lock()
	q, err := l.enqueueLocked(w, outer)
	l.mu.Unlock()
	if q == nil {
		return err
	}
	defer l.work.Done()
	t, ok := l.await(q, w)
	switch {
	case !ok:
		return w.reason()
	case t.granted:
		return nil
	}
	a := asker{Locker: l, queue: q, waiter: w, owner: t.owner}
	return a.run()
}

// asker is the one caller of this process that asks the store for a key.
type asker struct {
	*Locker
	queue  *queue
	waiter *waiter
	owner  string // under which the store knows this process; empty: not yet
}

// run asks until the waiter has its lease, or has to return. Without a lease, the next caller in the queue goes on.
func (a *asker) run() error {
	defer func() {
		if a.waiter.lease.tenure == nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.advanceLocked(a.queue, a.owner)
		}
	}()
	for contended := false; ; {
		if err := a.waiter.reason(); err != nil {
			return err
		}
		if a.owner == "" {
			a.owner = newOwner()
		}
		sent := time.Now()
		grant, err := a.ask()
		switch {
		case err != nil:
			return err
		case grant.Held:
		case a.enter(sent, grant):
			return nil
		default:
			// The caller has gone, or the answer came too late for the lease to be trusted. Asking anew means going
			// to the end of the store's line, since another process may be nearer to it.
			a.renounce()
			if !a.waiter.wait {
				return cmp.Or(a.waiter.reason(), ErrNoAnswer)
			}
			continue
		}
		if !a.waiter.wait {
			a.owner = "" // it stands in no line
		}
		if !contended {
			contended = true
			a.observe(func(o Observer) { o.Contended(a.queue.key) })
		}
		if !a.waiter.wait {
			return ErrNotAcquired
		}
		if err := a.backend.Wait(a.waiter.ctx, a.claim(), grant); err != nil {
			return cmp.Or(a.waiter.reason(), err)
		}
	}
}

// ask sends one request. It runs in a goroutine of its own, and does not end with the caller's context: Acquire
// returns when its caller gives up, and what is given back then does not overtake the request that it undoes.
func (a *asker) ask() (Grant, error) {
	claim := a.claim()
	answered := make(chan struct{})
	var grant Grant
	var err error
	a.work.Go(func() {
		defer close(answered)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.waiter.caller), a.patience())
		defer cancel()
		grant, err = a.backend.Acquire(ctx, claim)
		err = inTime(ctx, err)
	})
	select {
	case <-answered:
		if err != nil {
			a.renounce() // it may have been granted
		}
		return grant, err
	case <-a.waiter.ctx.Done():
		a.owner = ""
		a.work.Go(func() {
			<-answered
			a.giveBack(claim)
		})
		return Grant{}, a.waiter.reason()
	}
}

// enter turns a grant into the waiter's lease, if it can still be trusted.
func (a *asker) enter(sent time.Time, g Grant) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open.Err() != nil || a.waiter.ctx.Err() != nil || time.Since(sent) >= a.opt.TTL-a.opt.Margin {
		return false
	}
	a.beginLocked(a.queue, a.claim(), g, sent, a.waiter.lease)
	return true
}

// renounce gives back what the owner may hold. The next request has another owner, so that the two are not mixed up.
func (a *asker) renounce() {
	a.giveBack(a.claim())
	a.owner = ""
}

func (a *asker) claim() Claim {
	return Claim{Key: a.queue.key, Owner: a.owner, TTL: a.opt.TTL, Queue: a.waiter.wait}
}
