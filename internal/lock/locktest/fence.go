package locktest

import (
	"testing"

	"example.com/shop/internal/lock"
)

// fenceRises: "strictly higher for every later lease [...] of a key", also after
// one that ran out.
func fenceRises(t *testing.T, h Harness) {
	need(t, h.Fences, "Fences")
	ps, k := h.processes(t, 3, lock.Options{TTL: short}), key(t)
	var last int64
	for _, p := range []process{ps[0], ps[1], ps[0]} {
		lease := acquire(t, p.Locker, k)
		if lease.Fence() <= last {
			t.Errorf("fence %d after %d", lease.Fence(), last)
		}
		last = lease.Fence()
		giveBack(t, lease)
	}
	if !h.recovers() {
		return
	}
	crashed := acquire(t, ps[1].Locker, k)
	h.cut(ps[1])
	if lease := acquire(t, ps[2].Locker, k); lease.Fence() <= crashed.Fence() {
		t.Errorf("fence %d after %d of a crashed holder", lease.Fence(), crashed.Fence())
	}
}

// fenceSurvivesForgetting: the fence "survives FLUSHALL [and] restart without
// persistence".
func fenceSurvivesForgetting(t *testing.T, h Harness) {
	need(t, h.Fences, "Fences")
	need(t, h.Forget != nil, "Forget")
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0].Locker, k)
	h.Forget(t)
	next := acquire(t, ps[1].Locker, k) // the store has forgotten the first
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
	}
	release(t, next)
}

// fenceRaised: a number that the guarded resource has seen already "costs a
// retry, never a wedge"; one who lost the lease cannot get a new number.
func fenceRaised(t *testing.T, h Harness) {
	need(t, h.Raises, "Raises")
	need(t, h.Expires, "Expires")
	// Only one dies: the TTL of the other bounds no request of this test.
	ps, k := append(h.processes(t, 1, lock.Options{TTL: long}), h.processes(t, 1, lock.Options{TTL: short})...), key(t)
	lease := acquire(t, ps[0].Locker, k)
	seen := lease.Fence() + 3_600_000_000 // an hour ahead
	if err := lease.Raise(bounded(t), seen); err != nil {
		t.Fatalf("Raise: %v", err)
	}
	if lease.Fence() <= seen {
		t.Errorf("fence %d, want more than %d", lease.Fence(), seen)
	}
	release(t, lease)
	next := acquire(t, ps[1].Locker, k)
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after one raised to %d", next.Fence(), lease.Fence())
	}
	ps[1].tap.Cut()
	last := acquire(t, ps[0].Locker, k)
	before := next.Fence()
	if last.Fence() <= before {
		t.Errorf("fence %d after %d of a crashed holder, which was ahead of the clock", last.Fence(), before)
	}
	if err := next.Raise(bounded(t), seen); err == nil || next.Fence() != before {
		t.Errorf("Raise of a lost lease: %v, fence %d", err, next.Fence())
	}
	release(t, last)
}
