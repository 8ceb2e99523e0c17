package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// acquire is one call of Acquire or TryAcquire.
func (w *waiter) acquire() (*Lease, error) {
	err := w.obtain()
	if w.stop != nil {
		w.stop()
	}
	if err != nil {
		err = fmt.Errorf("lock %q: %w: %w", w.lease.key, ErrNotAcquired, err)
	}
	if told := w.opt.Observer.Waited; told != nil {
		told(w.lease.key, time.Since(w.began), err)
	}
	if err != nil {
		w.lease.cancel(nil)
		return nil, err
	}
	return w.lease, nil
}

// obtain gets the waiter its lease: from the holder in this process, by hand-off, or from the store.
func (w *waiter) obtain() error {
	key := w.lease.key
	if err := checkKey(key); err != nil {
		return err
	}
	if err := w.reason(); err != nil {
		return err
	}
	parent, _ := w.caller.Value(leaseKey{w.Locker, key}).(*Lease)
	w.mu.Lock()
	err := w.enqueueLocked(parent)
	w.mu.Unlock()
	if w.queue == nil {
		return err
	}
	defer w.work.Done()
	granted, ok := w.await()
	switch {
	case !ok:
		return w.reason()
	case granted:
		return nil
	}
	err = w.acquireLoop()
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wakeNextLocked(w.queue, w.owner)
	}
	return err
}

// checkKey returns an ErrKey if the key cannot be locked.
func checkKey(key string) error {
	if key == "" || len(key) > MaxKey || key[0] == '}' {
		return fmt.Errorf("%w: want 1 to %d bytes, the first no closing brace", ErrKey, MaxKey)
	}
	return nil
}

// acquireLoop asks the store until the waiter has its lease or has to return. One waiter of a queue at a time runs it;
// if it ends without a lease, the next waiter goes on.
func (w *waiter) acquireLoop() error {
	contended := false
	for {
		if err := w.reason(); err != nil {
			return err
		}
		if w.owner == "" {
			w.owner = rand.Text()
			if w.opt.Identity != "" {
				w.owner = w.opt.Identity + "/" + w.owner
			}
		}
		sent := time.Now()
		grant, err := w.ask()
		if err != nil {
			if w.owner != "" {
				w.abandon() // it may have been granted
			}
			return w.failed(err)
		}
		if !grant.Held {
			if err = w.beginTenure(sent, grant); err == nil {
				return nil
			}
			// The caller has gone, the Locker closes, or the answer came too late for the lease to be trusted. The next
			// request goes to the end of the store's queue, so that another process with faster answers can get the key.
			w.abandon()
			if !w.wait || errors.Is(err, ErrClosed) {
				return w.failed(err)
			}
			w.startTimer()
			continue
		}
		if !w.wait {
			w.owner = "" // it is not in the store's queue
			return w.failed(ErrHeld)
		}
		if told := w.opt.Observer.Contended; told != nil && !contended {
			told(w.queue.key)
		}
		contended = true
		w.startTimer()
		if err := w.backend.Wait(w.ctx, w.claim(), grant); err != nil {
			return w.failed(err)
		}
	}
}

// failed returns why the call returns after an error: the reason, if there is one, or the error itself. A request may end
// at the same deadline as the caller's time, whose timer may be later.
func (w *waiter) failed(err error) error {
	if reason := w.reason(); reason != nil {
		return reason
	}
	end, ok := w.ctx.Deadline()
	if !ok || time.Now().Before(end) {
		return err
	}
	if callers, ok := w.caller.Deadline(); ok && !callers.After(end) {
		return fmt.Errorf("%w: %w", ErrTimeout, context.DeadlineExceeded)
	}
	return ErrTimeout
}

// shortest is the least time that a request has for its answer.
const shortest = 250 * time.Millisecond

// ask sends one request. A cancelled caller does not end it: the key is given back only after the answer, so that the
// release does not overtake the request. The caller's deadline ends it. If little time is left until then, the request runs
// in a goroutine of its own, and its key is given back after the answer; a goroutine for each request would cost more than
// all else that an uncontended call does in this process.
func (w *waiter) ask() (Grant, error) {
	claim, sent := w.claim(), time.Now()
	if end, ok := w.ctx.Deadline(); !ok || time.Until(end) >= shortest {
		grant, err := w.send(claim, end)
		if err != nil && ok && !time.Now().Before(end) {
			w.releaseLate(claim, sent.Add(w.requestTimeout()))
		}
		return grant, err
	}
	answered := make(chan struct{})
	var grant Grant
	var err error
	w.work.Go(func() {
		defer close(answered)
		grant, err = w.send(claim, time.Time{})
	})
	select {
	case <-answered:
		return grant, err
	case <-w.ctx.Done():
		w.owner = ""
		w.work.Go(func() {
			<-answered
			w.releaseWithRetry(claim)
		})
		return Grant{}, w.reason()
	}
}

// send sends one request, which has until the end, if that is not zero, and not longer than a request's time limit.
func (w *waiter) send(c Claim, end time.Time) (Grant, error) {
	limit := time.Now().Add(w.requestTimeout())
	if !end.IsZero() && end.Before(limit) {
		limit = end
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(w.caller), limit)
	defer cancel()
	grant, err := w.backend.Acquire(ctx, c)
	return grant, noAnswer(ctx, err)
}

// abandon gives back what the owner may hold. The next request has another owner, so that a late release does not
// concern it.
func (w *waiter) abandon() {
	w.releaseWithRetry(w.claim())
	w.owner = ""
}

func (w *waiter) claim() Claim {
	return Claim{Key: w.queue.key, Owner: w.owner, TTL: w.opt.TTL, Queue: w.wait}
}
