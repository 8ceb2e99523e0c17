package locktest

import (
	"context"
	"errors"
	"testing"

	"example.com/shop/internal/lock"
)

// renewal: "runs while held [...] never after release". A lease that is renewed
// outlives its TTL.
func renewal(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: short}), key(t)
	for enough := bounded(t); ; {
		if enough.Err() != nil {
			t.Fatalf("no renewed lease has outlived its TTL for %v", patience)
		}
		lease := acquire(t, ps[0].Locker, k)
		select {
		case <-ps[0].tap.Seen(Renew, ps[0].tap.Count(Renew)+7): // two TTLs
		case <-lease.Context().Done(): // the machine stood still: once more
			continue
		}
		other, err := ps[1].TryAcquire(bounded(t), k)
		if err == nil && lease.Remaining() == 0 { // it stood still now
			giveBack(t, other)
			continue
		}
		if !isNotAcquired(err) {
			t.Fatalf("TryAcquire of a renewed key: %v, want ErrNotAcquired", err)
		}
		giveBack(t, lease)
		break
	}
	next := acquire(t, ps[1].Locker, k)
	after := ps[0].tap.Count(Renew)  // now: one may have been on its way at the release
	more := ps[1].tap.Seen(Renew, 4) // more than a TTL
	for done := false; !done; {
		select {
		case <-more:
			done = true
		case <-next.Context().Done(): // the machine stood still for long: once more
			next = acquire(t, ps[1].Locker, k)
		}
	}
	if n := ps[0].tap.Count(Renew) - after; n != 0 {
		t.Errorf("%d renewals after the release", n)
	}
	_ = next.Release()
}

// maxHold: renewal "stops at an optional maximum hold, so that a hung job does
// not keep its lock for ever".
func maxHold(t *testing.T, h Harness) {
	const margin = short / 10
	ps, k := h.processes(t, 2, lock.Options{TTL: short, MaxHold: 2 * short, Margin: margin}), key(t)
	for enough := bounded(t); ; {
		if enough.Err() != nil {
			t.Fatalf("never renewed for %v", patience)
		}
		stood := standstill(t)
		lease := acquire(t, ps[0].Locker, k)
		next := acquire(t, ps[1].Locker, k)
		cause := context.Cause(lease.Context())
		giveBack(t, next)
		if ps[0].tap.Count(Renew) == 0 || cause == nil && stood() > margin/2 {
			continue // the machine stood still until the lease ran out, or when it did: once more
		}
		if !errors.Is(cause, lock.ErrLost) {
			t.Errorf("cause %v, want ErrLost", cause)
		}
		return
	}
}

// renewalNeverRevives: renewal "never recreates an expired key".
func renewalNeverRevives(t *testing.T, h Harness) {
	need(t, h.Expires, "Expires")
	b, k := h.backend(t), key(t)
	first := lock.Claim{Key: k, Owner: "first", TTL: short}
	if g, err := b.Acquire(bounded(t), first); err != nil || g.Held {
		t.Fatalf("Acquire: %+v, %v", g, err)
	}
	// Renewals with a long TTL would keep the key for ever once they revive it.
	second := lock.Claim{Key: k, Owner: "second", TTL: long, Queue: true}
	for g, err := b.Acquire(bounded(t), second); ; g, err = b.Acquire(bounded(t), second) {
		if err != nil {
			t.Fatalf("Acquire: %v", err)
		}
		if !g.Held {
			break
		}
		if err := b.Wait(bounded(t), second, g); err != nil {
			t.Fatalf("Wait: %v", err)
		}
	}
	if _, err := b.Renew(bounded(t), first); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew of an expired lease: %v, want ErrLost", err)
	}
	if err := b.Release(bounded(t), second); err != nil {
		t.Fatalf("Release: %v", err)
	}
	if _, err := b.Renew(bounded(t), first); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew of a free key: %v, want ErrLost", err)
	}
	if g, err := b.Acquire(bounded(t), second); err != nil || g.Held {
		t.Errorf("Acquire of the free key: %+v, %v", g, err)
	}
}
