package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// tenure is the time for which this process holds a key under one owner, from the grant until the key is released or lost.
// Its leases follow one another by hand-off; one lease at a time is current. Locker.mu guards all fields that change.
type tenure struct {
	locker *Locker
	queue  *queue
	claim  Claim // with the highest fence in use

	granted  time.Time // when the answer arrived
	deadline time.Time // end of the trust in the current lease, if it is not renewed
	handoffs int

	first   *Lease    // of the current holder
	leases  []*Lease  // the first and those taken under it, until each is released
	entered time.Time // when the first began

	timer    *time.Timer // for the next renewal or the end
	renewAt  time.Time
	renewing bool // a renewal is in progress
	last     bool // all contexts had ended when a renewal was last due: the next successful renewal is the last
	ending   bool // the current lease is not renewed any more

	over  bool
	cause error // of the end, unless the key was released
}

// beginTenure begins a tenure with the waiter's lease, if the grant can still be trusted and the Locker is open. sent
// is the time of the request.
func (w *waiter) beginTenure(sent time.Time, g Grant) error {
	l, q := w.Locker, w.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return ErrClosed
	}
	if w.ctx.Err() != nil || time.Since(sent) >= l.opt.TTL-l.opt.Margin {
		return ErrNoAnswer
	}
	t := &tenure{
		locker:   l,
		queue:    q,
		claim:    Claim{Key: q.key, Owner: w.owner, TTL: l.opt.TTL, Fence: g.Fence},
		granted:  time.Now(),
		deadline: sent.Add(l.opt.TTL - l.opt.Margin),
		renewAt:  sent.Add(l.opt.TTL / 3),
	}
	q.asking, q.tenure = nil, t
	t.admitLocked(w.lease)
	t.timer = time.AfterFunc(t.untilNextLocked(), t.tick)
	return nil
}

// admitLocked makes a lease the current one.
func (t *tenure) admitLocked(first *Lease) {
	first.tenure, first.fence = t, t.claim.Fence
	t.first, t.leases, t.entered, t.last = first, []*Lease{first}, time.Now(), false
}

// reenterLocked makes inner another lease of parent's holder.
func (t *tenure) reenterLocked(parent, inner *Lease) bool {
	if parent == nil || parent.done || parent != t.first && !slices.Contains(t.leases, parent) || !t.liveLocked() {
		return false
	}
	inner.tenure, inner.parent, inner.fence = t, parent, t.claim.Fence
	t.leases = append(t.leases, inner)
	if t.ending { // the context of inner may not have ended
		t.ending = false
		t.timer.Reset(t.untilNextLocked())
	}
	return true
}

// liveLocked reports whether the current lease can be trusted. It asks the clock, because the timer may be late.
func (t *tenure) liveLocked() bool { return !t.over && time.Now().Before(t.deadline) }

// tick runs when the timer fires. Renewals run in the background: no request to the store delays the end of the lease.
func (t *tenure) tick() {
	l := t.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t.over:
		return
	case !t.liveLocked():
		t.endLocked(ErrLost)
		return
	case !t.renewing && !time.Now().Before(t.renewAt) && t.renewableLocked():
		t.renewing = true
		c := t.claim
		l.work.Go(func() { t.renew(c) })
	}
	t.timer.Reset(t.untilNextLocked())
}

// renewableLocked reports whether to renew the current lease now. A holder whose contexts have all ended gets one more
// renewal, because its COMMIT may be in progress.
func (t *tenure) renewableLocked() bool {
	most := t.locker.opt.MaxHold
	ended := !slices.ContainsFunc(t.leases, func(e *Lease) bool { return e.ctx.Err() == nil })
	t.ending = t.last && ended || most > 0 && time.Since(t.entered) >= most
	t.last = ended
	return !t.ending
}

// untilNextLocked returns the time until the next renewal or the end.
func (t *tenure) untilNextLocked() time.Duration {
	next := t.deadline
	if !t.renewing && !t.ending && t.renewAt.Before(next) {
		next = t.renewAt
	}
	return time.Until(next)
}

// renew sends one renewal, and updates the tenure by the answer.
func (t *tenure) renew(c Claim) {
	l, sent := t.locker, time.Now()
	_, err := t.ask(context.Background(), c)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t.over:
		return
	case errors.Is(err, ErrLost):
		t.endLocked(ErrLost)
		return
	case err == nil:
		t.extendLocked(sent)
	default:
		t.last = false // a failed renewal does not count as the last
	}
	now := time.Now()
	for !t.renewAt.After(now) { // counted from the grant: slow answers do not shift later renewals
		t.renewAt = t.renewAt.Add(l.opt.TTL / 3)
	}
	if soon := now.Add(l.opt.TTL / 20); err != nil && soon.Before(t.renewAt) {
		t.renewAt = soon // the store may work again
	}
	t.renewing = false
	t.timer.Reset(t.untilNextLocked())
}

// ask sends one renewal. It waits for a sixth of the TTL, or as long as a request needs. So a renewal that meets two dead
// connections has a third try.
func (t *tenure) ask(ctx context.Context, c Claim) (fence int64, err error) {
	ttl := t.locker.opt.TTL
	ctx, cancel := context.WithTimeout(ctx, min(ttl/3, max(ttl/6, shortest)))
	defer cancel()
	fence, err = t.locker.backend.Renew(ctx, c)
	return fence, noAnswer(ctx, err)
}

// extendLocked trusts the lease for another TTL from the time of the renewal's request.
func (t *tenure) extendLocked(sent time.Time) {
	if deadline := sent.Add(t.locker.opt.TTL - t.locker.opt.Margin); deadline.After(t.deadline) {
		t.deadline = deadline
	}
}

// handOverLocked gives the key to the next waiter of this process, without asking the store, and reports whether it
// did. After Options.HandoffTime it gives nothing, so that other processes can take the key; nor does it if too little
// of the TTL is left for the next lease, or if the lease is not renewed any more.
//
// The next fence is one more than the last. It must stay below the fence of the store's next grant, which comes from a
// clock in microseconds or is a gap above the last fence. So there are fewer hand-offs than microseconds since the
// grant, and fewer than numbers in a gap.
func (t *tenure) handOverLocked() bool {
	now, o := time.Now(), t.locker.opt
	held := now.Sub(t.granted)
	if t.locker.draining || t.ending || held > o.HandoffTime || t.deadline.Sub(now) < (o.TTL-o.Margin)/2 ||
		int64(t.handoffs) >= min(held.Microseconds(), fenceGap-1) {
		return false
	}
	w := t.queue.popLocked()
	if w == nil {
		return false
	}
	t.handoffs++
	if t.claim.Fence != 0 {
		t.claim.Fence++
	}
	t.admitLocked(w.lease)
	w.woken <- true
	return true
}

// endLocked takes the lease from its holder, releases the key in the background, and lets the next waiter ask for it.
func (t *tenure) endLocked(cause error) {
	t.closeLocked()
	cause = fmt.Errorf("lock %q: %w", t.claim.Key, cause)
	l, c, first, leases := t.locker, t.claim, t.first, t.leases
	t.cause = cause
	l.work.Go(func() {
		first.cancel(cause)
		for _, e := range leases { // a caller may have detached their contexts from the first lease's
			e.cancel(cause)
		}
		l.releaseWithRetry(c)
		if told := l.opt.Observer.Lost; told != nil {
			told(c.Key, cause)
		}
	})
	l.wakeNextLocked(t.queue, "")
}

func (t *tenure) closeLocked() {
	t.over = true
	t.queue.tenure = nil
	t.timer.Stop()
}
