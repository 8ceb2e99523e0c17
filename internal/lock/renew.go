package lock

import (
	"context"
	"errors"
	"time"
)

// due is when the next renewal is to be sent, counted from the beginning, so
// that slow answers do not shift the ones that follow.
func (h *holding) due() time.Time {
	return h.since.Add(time.Duration(h.renewals) * h.locker.opt.TTL / 3)
}

// renew is the renewal's alarm. The renewal runs beside the deadline's, which one
// that hangs does not delay.
func (h *holding) renew() {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	if h.over {
		return
	}
	c := h.claim
	c.Fence = h.fence
	h.locker.background(func() { h.renewed(c) })
}

// renewed sends a renewal, and does what follows from the answer.
func (h *holding) renewed(c Claim) {
	l := h.locker
	sent := time.Now()
	_, err := h.ask(context.Background(), c)
	l.observe(func(o Observer) { o.Renewed(c.Key, time.Since(sent), err) })

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case h.over:
		return
	case errors.Is(err, ErrLost):
		h.end(ErrLost)
		return
	case err == nil:
		h.extend(sent)
	}
	for !h.due().After(time.Now()) {
		h.renewals++
	}
	next := h.due()
	if soon := time.Now().Add(l.opt.TTL / 20); err != nil && soon.Before(next) {
		next = soon // the store may be back
	}
	l.renewals.set(&h.renewal, next)
}

// ask sends one renewal and waits for a third of the TTL at most.
func (h *holding) ask(ctx context.Context, c Claim) (fence int64, err error) {
	r := h.locker.request(ctx, h.locker.opt.TTL/3)
	fence, err = h.locker.backend.Renew(r, c)
	return fence, h.locker.end(r, err)
}

// extend trusts the lease for another TTL from when the renewal was sent. The
// caller holds Locker.mu.
func (h *holding) extend(sent time.Time) {
	l := h.locker
	if deadline := sent.Add(l.opt.TTL - l.opt.Margin); deadline.After(h.deadline) {
		h.deadline = deadline
		l.deadlines.set(&h.expiry, h.until())
	}
}
