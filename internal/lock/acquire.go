package lock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// acquire is one call of Acquire or TryAcquire.
func (l *Locker) acquire(ctx context.Context, key string, wait bool) (*Lease, error) {
	w, returning := l.newWaiter(ctx, key, wait), false
	defer func() {
		if w.stop != nil {
			w.stop()
		}
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
	l.observe(func(o Observer) { o.Waited(key, time.Since(w.began), err) })
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
	err := w.enqueueLocked(outer)
	l.mu.Unlock()
	if w.queue == nil {
		return err
	}
	defer l.work.Done()
	granted, ok := w.await()
	switch {
	case !ok:
		return w.reason()
	case granted:
		return nil
	}
	return w.askStore()
}

// askStore is what one caller of this process at a time does: it asks until it has its lease, or has to return. Without
// a lease, the next caller in the queue goes on.
func (w *waiter) askStore() error {
	defer func() {
		if w.lease.tenure == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.advanceLocked(w.queue, w.owner)
		}
	}()
	for contended := false; ; {
		if err := w.reason(); err != nil {
			return err
		}
		if w.owner == "" {
			w.owner = rand.Text()
		}
		sent := time.Now()
		grant, err := w.ask()
		switch {
		case err != nil:
			return err
		case grant.Held:
		case w.enter(sent, grant):
			return nil
		default:
			// The caller has gone, or the answer came too late for the lease to be trusted. Asking anew means going to
			// the end of the store's line, since another process may be nearer to it.
			w.renounce()
			if !w.wait {
				return cmp.Or(w.reason(), ErrNoAnswer)
			}
			continue
		}
		if !w.wait {
			w.owner = "" // it stands in no line
		}
		if !contended {
			contended = true
			w.observe(func(o Observer) { o.Contended(w.queue.key) })
		}
		if !w.wait {
			return ErrNotAcquired
		}
		w.limit()
		if err := w.backend.Wait(w.ctx, w.claim(), grant); err != nil {
			return cmp.Or(w.reason(), err)
		}
	}
}

// ask sends one request. It does not end with the caller's context, so that what is given back then does not overtake
// the request that it undoes. The caller's own goroutine sends it if it has the time: another one would cost more than
// all else that this process does in an uncontended turn.
func (w *waiter) ask() (Grant, error) {
	claim := w.claim()
	if end, ok := w.ctx.Deadline(); !ok || time.Until(end) > w.patience() {
		grant, err := w.send(claim)
		if err != nil {
			w.renounce() // it may have been granted
		}
		return grant, err
	}
	answered := make(chan struct{})
	var grant Grant
	var err error
	w.work.Go(func() {
		defer close(answered)
		grant, err = w.send(claim)
	})
	select {
	case <-answered:
		if err != nil {
			w.renounce()
		}
		return grant, err
	case <-w.ctx.Done():
		w.owner = ""
		w.work.Go(func() {
			<-answered
			w.giveBack(claim)
		})
		return Grant{}, w.reason()
	}
}

func (w *waiter) send(c Claim) (Grant, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.caller), w.patience())
	defer cancel()
	grant, err := w.backend.Acquire(ctx, c)
	return grant, inTime(ctx, err)
}

// enter turns a grant into the waiter's lease, if it can still be trusted.
func (w *waiter) enter(sent time.Time, g Grant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open.Err() != nil || w.ctx.Err() != nil || time.Since(sent) >= w.opt.TTL-w.opt.Margin {
		return false
	}
	w.beginLocked(w.queue, w.claim(), g, sent, w.lease)
	return true
}

// renounce gives back what the owner may hold. The next request has another owner, so that the two are not mixed up.
func (w *waiter) renounce() {
	w.giveBack(w.claim())
	w.owner = ""
}

func (w *waiter) claim() Claim {
	return Claim{Key: w.queue.key, Owner: w.owner, TTL: w.opt.TTL, Queue: w.wait}
}
