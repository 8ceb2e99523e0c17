package locktest

import (
	"errors"
	"testing"

	"example.com/shop/internal/lock"
)

// isNotAcquired reports whether err is an ErrNotAcquired with these reasons.
func isNotAcquired(err error, reasons ...error) bool {
	for _, r := range append(reasons, lock.ErrNotAcquired) {
		if !errors.Is(err, r) {
			return false
		}
	}
	return true
}

// ownerAsksAgain: "asking again after a lost reply finds its own lease instead
// of 'held by another'."
func ownerAsksAgain(t *testing.T, h Harness) {
	b, k := h.backend(t), key(t)
	c := lock.Claim{Key: k, Owner: "me", TTL: long}
	var last int64
	for range 3 {
		g, err := b.Acquire(bounded(t), c)
		if err != nil || g.Held {
			t.Fatalf("Acquire: %+v, %v", g, err)
		}
		if h.Fences && g.Fence <= last {
			t.Errorf("fence %d after %d", g.Fence, last)
		}
		last = g.Fence
	}
	if err := b.Release(bounded(t), c); err != nil {
		t.Errorf("Release: %v", err)
	}
	// A repeated request: the store may remember who released last.
	if err := b.Release(bounded(t), c); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Errorf("second Release: %v, want nil or ErrLost", err)
	}
}

// ownerComparedWhole: "Owners are compared whole, never by prefix."
func ownerComparedWhole(t *testing.T, h Harness) {
	b, k := h.backend(t), key(t)
	held := lock.Claim{Key: k, Owner: "abcdef", TTL: long}
	take := func() int64 {
		g, err := b.Acquire(bounded(t), held)
		if err != nil || g.Held {
			t.Fatalf("Acquire: %+v, %v", g, err)
		}
		return g.Fence
	}
	held.Fence = take()
	if err := b.Release(bounded(t), held); err != nil {
		t.Fatalf("Release: %v", err)
	}
	held.Fence = take() // of a key that the store has seen before: it may have a shorter way for those
	for _, owner := range []string{"abc", "abcdefg", "ABCDEF", "abcdef ", "*"} {
		c := lock.Claim{Key: k, Owner: owner, TTL: long, Fence: held.Fence}
		if g, err := b.Acquire(bounded(t), c); err != nil || !g.Held {
			t.Errorf("Acquire by %q: %+v, %v; want held by another", owner, g, err)
		}
		if _, err := b.Renew(bounded(t), c); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Renew by %q: %v, want ErrLost", owner, err)
		}
		if err := b.Release(bounded(t), c); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release by %q: %v, want ErrLost", owner, err)
		}
	}
	if err := b.Release(bounded(t), held); err != nil {
		t.Errorf("Release by the owner: %v", err)
	}
}

// lostReply: a key that was granted by an answer that got lost is given back,
// long before its TTL.
func lostReply(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	ps[0].tap.LoseAnswer(Acquire)
	if _, err := ps[0].Acquire(bounded(t), k); !isNotAcquired(err, ErrAnswerLost) {
		t.Fatalf("Acquire: %v, want ErrNotAcquired and the store's error", err)
	}
	release(t, acquire(t, ps[1].Locker, k))
}
