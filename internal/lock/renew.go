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

// renew is the renewal's timer. It runs beside the deadline's, which a renewal
// that hangs does not delay.
func (h *holding) renew() {
	l := h.locker
	l.mu.Lock()
	if h.over {
		l.mu.Unlock()
		return
	}
	l.work.Add(1)
	defer l.work.Done()
	c := h.claim
	c.Fence = h.fence
	l.mu.Unlock()

	sent := time.Now()
	_, err := h.ask(l.open, c)
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
	wait := time.Until(h.due())
	if err != nil {
		wait = min(wait, l.opt.TTL/20) // the store may be back soon
	}
	h.renewal.Reset(wait)
}

// ask sends one renewal and waits for a third of the TTL at most.
func (h *holding) ask(ctx context.Context, c Claim) (fence int64, err error) {
	l := h.locker
	ctx, cancel := context.WithTimeoutCause(ctx, l.opt.TTL/3, ErrNoAnswer)
	defer cancel()
	type answer struct {
		fence int64
		err   error
	}
	answers := make(chan answer, 1)
	l.background(func() {
		fence, err := l.backend.Renew(ctx, c)
		answers <- answer{fence, err}
	})
	select {
	case a := <-answers:
		return a.fence, a.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// extend trusts the lease for another TTL from when the renewal was sent. The
// caller holds Locker.mu.
func (h *holding) extend(sent time.Time) {
	l := h.locker
	if deadline := sent.Add(l.opt.TTL - l.opt.Margin); deadline.After(h.deadline) {
		h.deadline = deadline
		h.expiry.Reset(max(0, time.Until(h.until())))
	}
}
