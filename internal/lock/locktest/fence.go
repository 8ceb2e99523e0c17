package locktest

import (
	"testing"

	"example.com/shop/internal/lock"
)

// fenceSurvivesForgetting: "also after [...] FLUSHALL, or a restart without persistence".
func fenceSurvivesForgetting(t *testing.T, h Harness) {
	need(t, h.Fences, "Fences")
	need(t, h.Forget != nil, "Forget")
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0], k)
	h.Forget(t)
	next := acquire(t, ps[1], k) // the store has forgotten the first
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
	}
	release(t, next)
}

// fenceRaised: "Raise lifts the lease's fence above a number that the guarded resource has seen already"; a caller that
// lost the lease gets no number.
func fenceRaised(t *testing.T, h Harness) {
	need(t, h.Raises, "Raises")
	need(t, h.Expires, "Expires")
	// Only one dies: the TTL of the other bounds no request of this test.
	p, mortal, k := h.processes(t, 1, lock.Options{TTL: long})[0], h.processes(t, 1, lock.Options{TTL: short})[0], key(t)
	lease := acquire(t, p, k)
	seen := lease.Fence() + 3_600_000_000 // an hour ahead
	if err := lease.Raise(bounded(t), seen); err != nil {
		t.Fatalf("Raise: %v", err)
	}
	if lease.Fence() <= seen {
		t.Errorf("fence %d, want more than %d", lease.Fence(), seen)
	}
	release(t, lease)
	next := acquire(t, mortal, k)
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after one raised to %d", next.Fence(), lease.Fence())
	}
	mortal.tap.Cut()
	last := acquire(t, p, k)
	before := next.Fence()
	if last.Fence() <= before {
		t.Errorf("fence %d after %d of a crashed holder, which was ahead of the clock", last.Fence(), before)
	}
	if err := next.Raise(bounded(t), seen); err == nil || next.Fence() != before {
		t.Errorf("Raise of a lost lease: %v, fence %d", err, next.Fence())
	}
	release(t, last)
}
