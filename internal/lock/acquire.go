package lock

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// queue holds the callers of this process that wait for one key. It exists while the process holds the key or asks the
// store for the key. Locker.mu guards its fields.
type queue struct {
	key     string
	tenure  *tenure   // of the key; nil while it is not held
	asking  *waiter   // asks the store; nil while the key is held or being released
	waiting list.List // of *waiter
}

// waiter is one call of Acquire, until it returns.
type waiter struct {
	*Locker
	queue   *queue          // nil if the call is answered without a queue
	lease   *Lease          // for the caller, if it is granted
	caller  context.Context // as given to Acquire; its methods are user code
	began   time.Time
	ctx     context.Context    // ends when the call has to return
	stop    context.CancelFunc // of the timer for MaxWait; nil without a timer
	wait    bool               // false: TryAcquire
	woken   chan bool          // capacity 1: true if the waiter was handed the lease, false if it has to ask the store
	owner   string             // the name of this process in the store's queue; empty if it is not in the queue
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

// obtain gets the lease: from the holder in this process, by a hand-off, or from the store.
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

// enqueueLocked lets a call ask the store, or adds it to the key's queue. If the call has its answer at once, w.queue stays
// nil: the answer is an error, or another lease under the lease that the caller already holds.
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

// await waits until the waiter is woken. granted: the waiter was handed the lease. If not ok, the call has to return.
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

// leave ends the wait. If a wake-up has come meanwhile, leave passes it on.
func (w *waiter) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.element != nil {
		w.queue.waiting.Remove(w.element)
		return
	}
	if handed := <-w.woken; handed { // the channel has a value, because element is nil
		w.work.Go(func() { _ = w.lease.Release() }) // its error is of no use to the caller
		return
	}
	w.wakeNextLocked(w.queue, w.owner)
}

// wakeNextLocked lets the next waiter ask the store. It passes on owner, which may have a place in the store's queue,
// or may be empty. Without a next waiter, it gives up that place and ends the queue.
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

// popLocked removes the first waiter from the queue, and returns it or nil.
func (q *queue) popLocked() *waiter {
	first := q.waiting.Front()
	if first == nil {
		return nil
	}
	w := q.waiting.Remove(first).(*waiter)
	w.element = nil
	return w
}

// acquireLoop asks the store until the waiter has its lease or has to return. One waiter of a queue at a time runs it.
// If it ends without a lease, the next waiter runs it.
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
			// The caller has given up, the Locker closes, or the answer came too late for the lease to be trusted. The next
			// request goes to the end of the store's queue, so that another process with faster answers can get the key.
			w.abandon()
			if !w.wait || errors.Is(err, ErrClosed) {
				return w.failed(err)
			}
			w.startTimer()
			continue
		}
		if !w.wait {
			w.owner = "" // the owner is not in the store's queue
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

// shortest is the shortest time limit of a request.
const shortest = 250 * time.Millisecond

// ask sends one request. The cancellation of the caller does not end the request: the key is released only after the
// answer, so that the release does not overtake the request. The caller's deadline ends the request. If the deadline is
// near, the request runs in a goroutine of its own, and its key is released after the answer. A goroutine for every
// request would cost more than the rest of an uncontended call.
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

// send sends one request. It ends at end, if end is not zero, or at the time limit of a request.
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

// abandon releases the key that the owner may hold. The next request has another owner: a late release does not affect it.
func (w *waiter) abandon() {
	w.releaseWithRetry(w.claim())
	w.owner = ""
}

func (w *waiter) claim() Claim {
	return Claim{Key: w.queue.key, Owner: w.owner, TTL: w.opt.TTL, Queue: w.wait}
}

// startTimer starts the timer for MaxWait before a wait that may exceed one request. An immediate answer needs no timer.
func (w *waiter) startTimer() {
	if w.stop == nil && w.opt.MaxWait >= 0 {
		w.ctx, w.stop = context.WithDeadlineCause(w.ctx, w.began.Add(w.opt.MaxWait), ErrTimeout)
	}
}

// reason returns the reason why the call has to return, or nil if it may go on.
func (w *waiter) reason() error {
	own := context.Cause(w.ctx) // read first: if the caller's context is the cause, it has an error by now
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

// failed returns the error of the call after a failed request: the reason, if there is one, or the request's error. The
// request may end at the caller's deadline before the timer of the caller's context fires.
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
