package lock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"
)

// queue is where callers of this process wait for one key. It exists while the process holds the key or asks the
// store for it. Locker.mu guards its fields.
type queue struct {
	key     string
	tenure  *tenure   // while the key is held
	asking  *waiter   // asks the store; nil while the key is held or given back
	waiting list.List // of *waiter
}

// waiter is one call of Acquire, until it returns.
type waiter struct {
	lease   *Lease          // the caller's, if it is granted
	caller  context.Context // as given to Acquire: user code
	ctx     context.Context // ends when the call has to return
	stop    context.CancelFunc
	wait    bool          // false: TryAcquire
	turn    chan turn     // capacity 1
	element *list.Element // in queue.waiting; guarded by Locker.mu
}

// turn is what a waiter waits for: its lease, or else to ask the store.
type turn struct {
	granted bool
	owner   string // under which an earlier waiter asked, and stands in the store's line; mostly empty
}

// newWaiter prepares a call. Its lease has its context already, so that a hand-off under Locker.mu runs no code of
// the caller's context.
func (l *Locker) newWaiter(ctx context.Context, key string, wait bool) *waiter {
	e := &Lease{locker: l, key: key}
	w := &waiter{lease: e, caller: ctx, wait: wait, turn: make(chan turn, 1), stop: func() {}}
	w.ctx, e.cancel = context.WithCancelCause(ctx)
	e.ctx = leaseContext{w.ctx, e}
	if most := l.opt.MaxWait; most >= 0 {
		w.ctx, w.stop = context.WithDeadlineCause(w.ctx, time.Now().Add(most), ErrTimeout)
	}
	return w
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

// enqueueLocked gives a call its place: the next to ask the store, or in the key's queue. There is no queue if the
// call has its answer at once: an error, or another lease under the one that it has already.
func (l *Locker) enqueueLocked(w *waiter, outer *Lease) (*queue, error) {
	key := w.lease.key
	q := l.queues[key]
	switch {
	case l.open.Err() != nil:
		return nil, ErrClosed
	case q == nil:
		q = &queue{key: key, asking: w}
		l.queues[key] = q
		w.turn <- turn{}
	case q.tenure != nil && q.tenure.reenterLocked(outer, w.lease):
		return nil, nil
	case !w.wait:
		return nil, ErrNotAcquired
	case q.waiting.Len() >= l.opt.MaxQueue:
		return nil, ErrQueueFull
	default:
		w.element = q.waiting.PushBack(w)
	}
	l.work.Add(1)
	return q, nil
}

// await waits for the caller's turn, and reports whether it came before the call had to return. One that comes in the
// same instant is passed on.
func (l *Locker) await(q *queue, w *waiter) (t turn, ok bool) {
	select {
	case t = <-w.turn:
		return t, true
	case <-w.ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.element != nil {
		q.waiting.Remove(w.element)
	} else if t = <-w.turn; t.granted {
		l.work.Go(func() { _ = w.lease.Release() }) // the caller does not care whether it was lost
	} else {
		l.advanceLocked(q, t.owner)
	}
	return turn{}, false
}

// advanceLocked lets the next caller ask the store, under the owner that stands in the store's line, if there is one.
// Without a next caller that place is given up, and the queue ends.
func (l *Locker) advanceLocked(q *queue, owner string) {
	if q.asking = q.popLocked(); q.asking != nil {
		q.asking.turn <- turn{owner: owner}
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
