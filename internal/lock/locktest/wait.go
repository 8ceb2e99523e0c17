package locktest

import (
	"testing"

	"example.com/shop/internal/lock"
)

// wokenByRelease: a waiter "wakes by notification": the holder's TTL is longer
// than the test.
func wokenByRelease(t *testing.T, h Harness) {
	need(t, h.Notifies, "Notifies")
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0].Locker, k)
	done := make(chan error, 1)
	go func() {
		next, err := ps[1].Acquire(bounded(t), k)
		if err == nil {
			err = next.Release()
		}
		done <- err
	}()
	wait(t, "waiter", ps[1].tap.Seen(Wait, 1))
	asked := ps[1].tap.Count(Acquire)
	release(t, lease)
	if err := <-done; err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	if n := ps[1].tap.Count(Acquire) - asked; n != 1 {
		t.Errorf("asked %d times after the release, want 1", n)
	}
}

// oneWokenPerRelease: "at most one process woken per release".
func oneWokenPerRelease(t *testing.T, h Harness) {
	need(t, h.Notifies, "Notifies")
	const waiters = 8
	ps, k := h.processes(t, 1+waiters, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0].Locker, k)
	leases := make(chan *lock.Lease, waiters)
	for _, p := range ps[1:] {
		go func() {
			if next, err := p.Acquire(bounded(t), k); err == nil {
				leases <- next
			} else {
				t.Errorf("Acquire: %v", err)
				leases <- nil
			}
		}()
		wait(t, "waiter", p.tap.Seen(Wait, 1))
	}
	asked := func() (n int) {
		for _, p := range ps[1:] {
			n += p.tap.Count(Acquire)
		}
		return n
	}
	for range waiters {
		before := asked()
		release(t, lease)
		if lease = <-leases; lease == nil {
			return
		}
		if n := asked() - before; n != 1 {
			t.Errorf("a release made %d ask again, want 1", n)
		}
	}
	release(t, lease)
}

// unheardCall: "a lost notification [...] delays and never hangs": the waiter
// asks again when the holder's time should be over.
func unheardCall(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: short}), key(t)
	ps[1].tap.Deafen()
	lease := acquire(t, ps[0].Locker, k)
	done := make(chan error, 1)
	go func() {
		next, err := insist(bounded(t), ps[1].Locker, k)
		if err == nil {
			giveBack(t, next)
		}
		done <- err
	}()
	wait(t, "waiter", ps[1].tap.Seen(Wait, 1))
	giveBack(t, lease)
	if err := <-done; err != nil {
		t.Fatalf("Acquire: %v", err)
	}
}
