package lock

import (
	"container/list"
	"context"
)

// line is the queue of this process for one key. It exists while somebody in
// the process holds the key or asks the store for it; all others wait here, so
// that a key has one contender per process. Its fields are guarded by Locker.mu.
type line struct {
	key     string
	owner   string    // under which the store knows this process; empty: not yet
	held    *holding  // nil while the first in line asks the store
	waiting list.List // of *waiter
}

// waiter is a caller that stands in line.
type waiter struct {
	ctx  context.Context
	turn chan *Lease // capacity 1: a lease handed over, or nil for "ask the store"
	at   *list.Element
}

// join puts a caller at the end of the line.
func (q *line) join(ctx context.Context) *waiter {
	w := &waiter{ctx: ctx, turn: make(chan *Lease, 1)}
	w.at = q.waiting.PushBack(w)
	return w
}

// next takes the first waiter out of the line; nil if nobody waits.
func (q *line) next() *waiter {
	first := q.waiting.Front()
	if first == nil {
		return nil
	}
	w := q.waiting.Remove(first).(*waiter)
	w.at = nil
	return w
}

// await waits in line for a lease or for the turn to ask the store.
func (l *Locker) await(ctx, bounded context.Context, q *line, w *waiter) (*Lease, error) {
	select {
	case lease := <-w.turn:
		if lease != nil {
			return lease, nil
		}
		return l.contend(ctx, bounded, q, true)
	case <-bounded.Done():
	case <-l.open.Done():
	}
	l.mu.Lock()
	if w.at != nil {
		q.waiting.Remove(w.at)
		l.mu.Unlock()
		return nil, l.gaveUp(ctx, q.key)
	}
	l.mu.Unlock()
	// The turn came in the same instant: pass it on.
	if lease := <-w.turn; lease != nil {
		// Whether it was lost is no concern of one who gave up.
		l.background(func() { _ = lease.Release() })
	} else {
		l.passTurn(q)
	}
	return nil, l.gaveUp(ctx, q.key)
}

// passTurn ends a caller's turn that led to nothing. If nobody else waits, the
// place that the owner may have in the store is given up as well.
func (l *Locker) passTurn(q *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.owner != "" && q.waiting.Len() == 0 {
		c := Claim{Key: q.key, Owner: q.owner, TTL: l.opt.TTL}
		l.background(func() { l.giveBack(c) })
	}
	l.advance(q)
}

// advance gives the turn to the next in line, or ends the line. The caller holds
// Locker.mu.
func (l *Locker) advance(q *line) {
	if w := q.next(); w != nil {
		w.turn <- nil
		return
	}
	delete(l.lines, q.key)
}
