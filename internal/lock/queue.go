package lock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"
)

// queue is where callers of this process wait for one key. It exists while the process holds the key or asks the store
// for it. Locker.mu guards its fields.
type queue struct {
	key     string
	tenure  *tenure   // while the key is held
	asking  *waiter   // asks the store; nil while the key is held or given back
	waiting list.List // of *waiter
}

// waiter is one call of Acquire, until it returns.
type waiter struct {
	*Locker
	queue   *queue          // nil: it has its answer without
	lease   *Lease          // the caller's, if it is granted
	caller  context.Context // as given to Acquire: user code
	began   time.Time
	ctx     context.Context    // ends when the call has to return
	stop    context.CancelFunc // of MaxWait; nil: it does not count yet
	wait    bool               // false: TryAcquire
	turn    chan bool          // capacity 1: true, the lease is granted; or false, it is the turn to ask the store
	owner   string             // under which this process asked already, and stands in the store's line; else empty
	element *list.Element      // in queue.waiting; guarded by Locker.mu
}

// newWaiter prepares a call. Its lease has its context already, so that a hand-off under Locker.mu runs no code of the
// caller's context.
func (l *Locker) newWaiter(ctx context.Context, key string, wait bool) *waiter {
	e := &Lease{locker: l, key: key}
	w := &waiter{Locker: l, lease: e, caller: ctx, wait: wait, turn: make(chan bool, 1), began: time.Now()}
	w.ctx, e.cancel = context.WithCancelCause(ctx)
	e.ctx = context.WithValue(w.ctx, leaseKey{l, key}, e)
	if l.opt.MaxWait <= l.patience() {
		w.limit()
	}
	return w
}

// limit ends the call with MaxWait. It comes before each wait that may be longer than one request: a timer is too dear
// for a call that has its answer at once.
func (w *waiter) limit() {
	if w.stop == nil && w.opt.MaxWait >= 0 {
		w.ctx, w.stop = context.WithDeadlineCause(w.ctx, w.began.Add(w.opt.MaxWait), ErrTimeout)
	}
}

// reason returns why the call has to return, nil if it has not.
func (w *waiter) reason() error {
	err, cause := w.caller.Err(), context.Cause(w.caller)
	switch {
	case err == nil:
		return context.Cause(w.ctx) // ErrTimeout or ErrClosed
	case errors.Is(cause, err):
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// enqueueLocked gives a call its place: the next to ask the store, or in the key's queue. There is no queue if the call
// has its answer at once: an error, or another lease under the one that it has already.
func (w *waiter) enqueueLocked(outer *Lease) error {
	l, key := w.Locker, w.lease.key
	q := l.queues[key]
	switch {
	case l.open.Err() != nil:
		return ErrClosed
	case q == nil:
		q = &queue{key: key, asking: w}
		l.queues[key] = q
		w.turn <- false
	case q.tenure != nil && q.tenure.reenterLocked(outer, w.lease):
		return nil
	case !w.wait:
		return ErrNotAcquired
	case q.waiting.Len() >= l.opt.MaxQueue:
		return ErrQueueFull
	default:
		w.element = q.waiting.PushBack(w)
	}
	w.queue = q
	l.work.Add(1)
	return nil
}

// await waits for the caller's turn, and reports whether it came before the call had to return. One that comes in the
// same instant is passed on.
func (w *waiter) await() (granted, ok bool) {
	select {
	case granted = <-w.turn:
		return granted, true
	default:
		w.limit()
	}
	select {
	case granted = <-w.turn:
		return granted, true
	case <-w.ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.element != nil {
		w.queue.waiting.Remove(w.element)
	} else if granted = <-w.turn; granted {
		w.work.Go(func() { _ = w.lease.Release() }) // the caller does not care whether it was lost
	} else {
		w.advanceLocked(w.queue, w.owner)
	}
	return false, false
}

// advanceLocked lets the next caller ask the store, under the owner that stands in the store's line, if there is one.
// Without a next caller that place is given up, and the queue ends.
func (l *Locker) advanceLocked(q *queue, owner string) {
	if q.asking = q.popLocked(); q.asking != nil {
		q.asking.owner = owner
		q.asking.turn <- false
		return
	}
	delete(l.queues, q.key)
	if owner != "" {
		l.giveBack(Claim{Key: q.key, Owner: owner, TTL: l.opt.TTL})
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

// callersLocked returns the leases that callers wait for.
func (q *queue) callersLocked() (leases []*Lease) {
	if q.asking != nil {
		leases = append(leases, q.asking.lease)
	}
	for e := q.waiting.Front(); e != nil; e = e.Next() {
		leases = append(leases, e.Value.(*waiter).lease)
	}
	return leases
}
