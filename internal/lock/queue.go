package lock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"
)

// queue holds the callers of this process that wait for one key. It exists while the process holds the key or asks the
// store for it. Locker.mu guards its fields.
type queue struct {
	key     string
	tenure  *tenure   // of the key; nil while it is not held
	asking  *waiter   // that asks the store; nil while the key is held or given back
	waiting list.List // of *waiter
}

// waiter is one call of Acquire, until it returns.
type waiter struct {
	*Locker
	queue   *queue          // nil if it is answered without one
	lease   *Lease          // the caller's, if it is granted
	caller  context.Context // as given to Acquire; its methods are user code
	began   time.Time
	ctx     context.Context    // ends when the call has to return
	stop    context.CancelFunc // of the timer for MaxWait; nil while there is none
	wait    bool               // false: TryAcquire
	woken   chan bool          // capacity 1: true if it was handed the lease, false if it has to ask the store
	owner   string             // under which this process is in the store's queue already; empty if it is not
	element *list.Element      // in queue.waiting; guarded by Locker.mu
}

// newWaiter prepares a call. It creates the lease's context now, so that a hand-off under Locker.mu runs no code of the
// caller's context.
func (l *Locker) newWaiter(ctx context.Context, key string, wait bool) *waiter {
	e := &Lease{locker: l, key: key}
	w := &waiter{Locker: l, lease: e, caller: ctx, wait: wait, woken: make(chan bool, 1), began: time.Now()}
	w.ctx, e.cancel = context.WithCancelCause(ctx)
	e.ctx = context.WithValue(w.ctx, leaseKey{l, key}, e)
	if l.opt.MaxWait <= l.requestTimeout() {
		w.startTimer()
	}
	return w
}

// startTimer starts the timer for MaxWait. It is called before each wait that may be longer than one request: a call
// that is answered at once does without.
func (w *waiter) startTimer() {
	if w.stop == nil && w.opt.MaxWait >= 0 {
		w.ctx, w.stop = context.WithDeadlineCause(w.ctx, w.began.Add(w.opt.MaxWait), ErrTimeout)
	}
}

// reason returns why the call has to return, nil if it has not.
func (w *waiter) reason() error {
	own := context.Cause(w.ctx) // read first: if it is the caller's, the caller's has an error by now
	err, cause := w.caller.Err(), context.Cause(w.caller)
	switch {
	case err == nil:
		return own // ErrTimeout or ErrClosed
	case !errors.Is(cause, err):
		cause = fmt.Errorf("%w: %w", err, cause)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrTimeout, cause)
	}
	return cause
}

// enqueueLocked lets a call ask the store, or adds it to the key's queue. w.queue stays nil if the call has its answer
// at once: an error, or another lease under the one that the caller holds already.
func (w *waiter) enqueueLocked(parent *Lease) error {
	l, key := w.Locker, w.lease.key
	q := l.queues[key]
	switch {
	case q != nil && q.tenure != nil && q.tenure.reenterLocked(parent, w.lease):
		return nil
	case l.draining:
		return ErrClosed
	case q == nil:
		q = &queue{key: key, asking: w}
		l.queues[key] = q
		w.woken <- false
	case !w.wait:
		return ErrHeld
	case q.waiting.Len() >= l.opt.MaxQueue:
		return ErrQueueFull
	default:
		w.element = q.waiting.PushBack(w)
	}
	w.queue = q
	l.work.Add(1)
	return nil
}

// await waits until the waiter is woken: granted if it was handed the lease. ok is false if the call has to return first.
func (w *waiter) await() (granted, ok bool) {
	select {
	case granted = <-w.woken:
		return granted, true
	default:
	}
	w.startTimer()
	select {
	case granted = <-w.woken:
		return granted, true
	case <-w.ctx.Done():
		w.leave()
		return false, false
	}
}

// leave ends the wait, and passes a wake-up on that has come meanwhile.
func (w *waiter) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.element != nil {
		w.queue.waiting.Remove(w.element)
		return
	}
	if handed := <-w.woken; handed { // the channel has a value, since element is nil
		w.work.Go(func() { _ = w.lease.Release() }) // its error is of no use to the caller
		return
	}
	w.wakeNextLocked(w.queue, w.owner)
}

// wakeNextLocked lets the next waiter ask the store. owner is in the store's queue already, and so passed on; it may be
// empty. Without a next waiter, that place is given up and the queue ends.
func (l *Locker) wakeNextLocked(q *queue, owner string) {
	q.asking = q.popLocked()
	if q.asking != nil {
		q.asking.owner = owner
		q.asking.woken <- false
		return
	}
	delete(l.queues, q.key)
	if owner != "" {
		l.releaseWithRetry(Claim{Key: q.key, Owner: owner, TTL: l.opt.TTL, Queue: true})
	}
}

// popLocked takes the first waiter out of the queue; nil if there is none.
func (q *queue) popLocked() *waiter {
	first := q.waiting.Front()
	if first == nil {
		return nil
	}
	w := q.waiting.Remove(first).(*waiter)
	w.element = nil
	return w
}
