package locktest

import (
	"context"
	"errors"
	"testing"

	"example.com/shop/internal/lock"
)

var errShopClosed = errors.New("the shop closes")

// owner is one claim on a backend, without a Locker.
type owner struct {
	lock.Backend
	claim lock.Claim
}

// gets fails the test unless the owner gets the key at once. It returns the fence.
func (o owner) gets(t *testing.T) (fence int64) {
	t.Helper()
	g, err := o.Acquire(bounded(t), o.claim)
	if err != nil || g.Held {
		t.Fatalf("Acquire by %s: %+v, %v; want the key", o.claim.Owner, g, err)
	}
	return g.Fence
}

// queues fails the test unless the key is held. The owner then waits in the store's queue.
func (o owner) queues(t *testing.T) {
	t.Helper()
	if g, err := o.Acquire(bounded(t), o.claim); err != nil || !g.Held {
		t.Fatalf("Acquire by %s: %+v, %v; want held by another", o.claim.Owner, g, err)
	}
}

// isNotified fails the test if the owner is not.
func (o owner) isNotified(t *testing.T) {
	t.Helper()
	if err := o.Wait(bounded(t), o.claim, lock.Grant{Held: true, Retry: long}); err != nil {
		t.Fatalf("Wait by %s: %v", o.claim.Owner, err)
	}
}

// givesUp leaves the queue. Where that passes on a key that was kept for the owner, the store may take it for a release.
func (o owner) givesUp(t *testing.T) {
	t.Helper()
	if err := o.Release(bounded(t), o.claim); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Fatalf("Release by %s, which waits: %v, want nil or ErrLost", o.claim.Owner, err)
	}
}

func (o owner) frees(t *testing.T) {
	t.Helper()
	if err := o.Release(bounded(t), o.claim); err != nil {
		t.Fatalf("Release by %s: %v", o.claim.Owner, err)
	}
}

// ownerAsksAgain: "asking again after a lost reply [...] finds the owner's own lease".
func ownerAsksAgain(t *testing.T, h Harness) {
	o := owner{h.backend(t), lock.Claim{Key: key(t), Owner: "me", TTL: long}}
	var last int64
	for range 3 {
		fence := o.gets(t)
		if h.Fences && fence <= last {
			t.Errorf("fence %d after %d", fence, last)
		}
		last = fence
	}
	o.frees(t)
	o.givesUp(t) // a repeated request: the store may remember who released last
}

// ownerComparedWhole: "Owners are [...] compared whole", never by prefix.
func ownerComparedWhole(t *testing.T, h Harness) {
	b, k := h.backend(t), key(t)
	holder := owner{b, lock.Claim{Key: k, Owner: "abcdef", TTL: long}}
	holder.claim.Fence = holder.gets(t)
	holder.frees(t)
	holder.claim.Fence = holder.gets(t) // of a key that the store has seen before: it may have a shorter way for those
	for _, name := range []string{"abc", "abcdefg", "ABCDEF", "abcdef ", "*"} {
		other := owner{b, lock.Claim{Key: k, Owner: name, TTL: long, Fence: holder.claim.Fence}}
		other.queues(t) // in none: its claim has no Queue
		if _, err := b.Renew(bounded(t), other.claim); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Renew by %q: %v, want ErrLost", name, err)
		}
		if err := b.Release(bounded(t), other.claim); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release by %q: %v, want ErrLost", name, err)
		}
	}
	holder.frees(t)
}

// lostReply: a key that was granted by an answer that got lost is given back, long before its TTL.
func lostReply(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	ps[0].tap.LoseAnswer(Acquire)
	if _, err := ps[0].Acquire(bounded(t), k); !isNotAcquired(err, ErrAnswerLost) {
		t.Fatalf("Acquire: %v, want ErrNotAcquired and the store's error", err)
	}
	release(t, acquire(t, ps[1], k))
}

// releaseAfterCancel: Release "works whatever became of any context", and a second call does nothing.
func releaseAfterCancel(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	ctx, cancel := context.WithCancelCause(bounded(t))
	lease, err := ps[0].Acquire(ctx, k)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	cancel(errShopClosed)
	if !errors.Is(context.Cause(lease.Context()), errShopClosed) {
		t.Errorf("cause %v, want that of the parent", context.Cause(lease.Context()))
	}
	release(t, lease)
	release(t, lease)
	next := acquire(t, ps[1], k)
	release(t, lease) // not the next one's
	if left := next.Remaining(); left == 0 {
		t.Error("a second Release ended another lease")
	}
	release(t, next)
	if !errors.Is(context.Cause(next.Context()), lock.ErrReleased) {
		t.Errorf("cause %v, want ErrReleased", context.Cause(next.Context()))
	}
}

// releaseReportsLoss: "ErrLost: the lease was over before."
func releaseReportsLoss(t *testing.T, h Harness) {
	need(t, h.Forget != nil, "Forget")
	p, k := h.processes(t, 1, lock.Options{TTL: long})[0], key(t)
	lease := acquire(t, p, k)
	h.Forget(t)
	for range 2 {
		if err := lease.Release(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release: %v, want ErrLost", err)
		}
	}
	err := p.Do(bounded(t), k, func(context.Context, *lock.Lease) error {
		h.Forget(t)
		return errShopClosed
	})
	if !errors.Is(err, lock.ErrLost) || !errors.Is(err, errShopClosed) {
		t.Errorf("Do: %v, want the function's error and ErrLost", err)
	}
}
