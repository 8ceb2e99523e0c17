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

	quit context.CancelCauseFunc // ends the latest wait of the first in line for the store
}

// waiter is a caller that stands in line.
type waiter struct {
	caller
	turn chan turn // capacity 1
	at   *list.Element
	late alarm
}

// turn is what a waiter is told: a lease that was handed over, or why it waits no
// longer; neither: to ask the store.
type turn struct {
	lease *Lease
	err   error
}

// join puts a caller at the end of the line.
func (q *line) join(c caller) *waiter {
	w := &waiter{caller: c, turn: make(chan turn, 1)}
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

// close ends the lease and all waiting. The caller holds Locker.mu.
func (q *line) close() {
	for w := q.next(); w != nil; w = q.next() {
		w.turn <- turn{err: ErrClosed}
	}
	if q.quit != nil {
		q.quit(ErrClosed)
	}
	if q.held != nil {
		q.held.end(ErrClosed)
	}
}

// await waits in line for a lease or for the turn to ask the store.
func (l *Locker) await(q *line, w *waiter) (*Lease, error) {
	if !w.until.IsZero() {
		w.late.wake = func() { l.dismiss(q, w, ErrTimeout) }
		l.waits.set(&w.late, w.until)
		defer l.waits.clear(&w.late)
	}
	select {
	case t := <-w.turn:
		switch {
		case t.err != nil:
			return nil, notAcquired(q.key, t.err)
		case t.lease != nil:
			return t.lease, nil
		}
		return l.contend(w.caller, q)
	case <-w.ctx.Done():
	}
	l.dismiss(q, w, ended(w.ctx))
	// The turn may have come in the same instant: pass it on.
	switch t := <-w.turn; {
	case t.lease != nil:
		// Whether it was lost is no concern of one who gave up.
		l.background(func() { _ = t.lease.Release() })
	case t.err == nil:
		l.passTurn(q)
	}
	return nil, notAcquired(q.key, ended(w.ctx))
}

// dismiss tells a waiter to wait no longer, unless its turn has come.
func (l *Locker) dismiss(q *line, w *waiter, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.at != nil {
		q.waiting.Remove(w.at)
		w.at = nil
		w.turn <- turn{err: err}
	}
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
		w.turn <- turn{}
		return
	}
	delete(l.lines, q.key)
}
