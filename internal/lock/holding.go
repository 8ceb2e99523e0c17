package lock

import (
	"context"
	"fmt"
	"time"
)

// holding is what this process holds in the store: one key under one owner,
// from the grant until it is released or lost. Its leases follow one another;
// one is current. All fields are guarded by Locker.mu.
type holding struct {
	locker *Locker
	line   *line
	claim  Claim

	since    time.Time // when the granted request was sent
	granted  time.Time // when its answer was here
	deadline time.Time // until when the store's word is trusted
	fence    int64     // the highest in use
	handoffs int

	lease    *Lease
	entered  time.Time // when the current lease began
	expiry   alarm
	renewal  alarm
	renewals int // the next one is due at since + renewals x a third of the TTL

	over   bool          // released or lost: nothing more happens
	closed chan struct{} // closed then; nil if nobody asks
}

// enter turns a grant into a lease. It returns nil if the answer came too late
// to be trusted, the caller has gone, or the Locker was closed meanwhile.
func (l *Locker) enter(ctx context.Context, q *line, sent time.Time, g Grant) *Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	deadline := sent.Add(l.opt.TTL - l.opt.Margin)
	now := time.Now()
	if l.closed() || ctx.Err() != nil || !now.Before(deadline) {
		return nil
	}
	h := &holding{
		locker:   l,
		line:     q,
		claim:    Claim{Key: q.key, Owner: q.owner, TTL: l.opt.TTL},
		since:    sent,
		granted:  now,
		deadline: deadline,
		fence:    g.Fence,
		renewals: 1,
	}
	q.held = h
	lease := h.admit(ctx)
	h.expiry.wake, h.renewal.wake = h.expire, h.renew
	l.deadlines.set(&h.expiry, h.until())
	l.renewals.set(&h.renewal, h.due())
	if g.Lost != nil {
		h.closed = make(chan struct{})
		l.background(func() { h.watch(g.Lost) })
	}
	return lease
}

// admit makes a lease for the caller whose context ctx is.
func (h *holding) admit(ctx context.Context) *Lease {
	lease := &Lease{holding: h, fence: h.fence, owner: ownerOf(ctx)}
	lease.root = lease
	lease.bind(ctx)
	h.lease, h.entered = lease, time.Now()
	return lease
}

// until is when the current lease ends if nothing is renewed.
func (h *holding) until() time.Time {
	if limit := h.locker.opt.MaxHold; limit > 0 {
		if end := h.entered.Add(limit); end.Before(h.deadline) {
			return end
		}
	}
	return h.deadline
}

// expire is the deadline's alarm. Nothing that talks to a store stands between
// it and the end of the lease.
func (h *holding) expire() {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	if h.over {
		return
	}
	if until := h.until(); time.Now().Before(until) {
		h.locker.deadlines.set(&h.expiry, until) // renewed, or handed over, meanwhile
		return
	}
	h.end(ErrLost)
}

// watch ends the lease when the store tells by itself that it is gone.
func (h *holding) watch(lost <-chan struct{}) {
	select {
	case <-lost:
	case <-h.closed:
		return
	}
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	if !h.over {
		h.end(ErrLost)
	}
}

// end takes the lease from its holder, gives the key back to the store in the
// background, and lets the next in line ask for it under another name. The
// caller holds Locker.mu.
func (h *holding) end(cause error) {
	l, q := h.locker, h.line
	h.close()
	cause = fmt.Errorf("lock %q: %w", q.key, cause)
	h.lease.cancel(cause)
	for e := range h.lease.again { // under an owner's id, no child of the first one's context
		e.cancel(cause)
	}
	c := h.claim
	c.Fence = h.fence
	l.background(func() {
		l.observe(func(o Observer) { o.Lost(q.key, cause) })
		l.giveBack(c)
	})
	l.advance(q)
}

// close stops the alarms for good. The caller holds Locker.mu.
func (h *holding) close() {
	h.over = true
	h.line.held = nil
	h.line.owner = ""
	h.locker.deadlines.clear(&h.expiry)
	h.locker.renewals.clear(&h.renewal)
	if h.closed != nil {
		close(h.closed)
	}
}
