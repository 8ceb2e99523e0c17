package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// process is a Locker with a Tap between it and the store.
type process struct {
	*lock.Locker
	tap *Tap
}

// processes returns n Lockers on connections of their own.
func (h Harness) processes(t *testing.T, n int, o lock.Options) []process {
	t.Helper()
	ps := make([]process, n)
	for i := range ps {
		tap := NewTap(h.backend(t))
		ps[i] = process{Locker: lock.New(tap, o), tap: tap}
		t.Cleanup(func() {
			if err := ps[i].Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	return ps
}

// backend returns a Backend that is closed at the end of the test.
func (h Harness) backend(t *testing.T) lock.Backend {
	t.Helper()
	b := h.Connect(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close backend: %v", err)
		}
	})
	return b
}

// bounded returns a context that ends with the suite's patience.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// key returns a key that no other test uses.
func key(t *testing.T) string {
	return fmt.Sprintf("%s/%08x", t.Name(), rand.Uint32())
}

// acquire asks until there is an answer: if the machine stands still for a second, a request runs into its time limit.
func acquire(t *testing.T, p process, key string) *lock.Lease {
	t.Helper()
	for ctx := bounded(t); ; {
		lease, err := p.Acquire(ctx, key)
		if err == nil {
			return lease
		}
		if !errors.Is(err, lock.ErrNoAnswer) || ctx.Err() != nil {
			t.Fatalf("Acquire: %v", err)
		}
	}
}

// release fails the test if the lease was lost.
func release(t *testing.T, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// succeeds acquires the key of a lease that the store has ended. The test fails unless the fence rises by more than gap.
func (p process) succeeds(t *testing.T, h Harness, before *lock.Lease, gap int64) *lock.Lease {
	t.Helper()
	next := acquire(t, p, before.Key())
	if h.Fences && next.Fence() <= before.Fence()+gap {
		t.Errorf("fence %d after %d", next.Fence(), before.Fence())
	}
	return next
}

// isLost fails the test unless the release of the lease reports that the lease was lost.
func isLost(t *testing.T, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release of a lost lease: %v, want ErrLost", err)
	}
}

// wait fails the test if the signal does not come.
func wait(t *testing.T, what string, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened for %v", what, patience)
	}
}

// exclusion: of all leases on a key, in any process, one at a time is trusted, and fences rise from lease to lease.
func exclusion(t *testing.T, h Harness) {
	const lockers, goroutines, turns = 4, 16, 4
	ps, k := h.processes(t, lockers, lock.Options{TTL: long}), key(t)
	var (
		holders int // only the lock guards it: the race detector watches
		last    int64
		wg      sync.WaitGroup
	)
	for _, p := range ps {
		for range goroutines {
			wg.Go(func() {
				for range turns {
					err := p.Do(bounded(t), k, func(_ context.Context, lease *lock.Lease) error {
						if holders++; holders != 1 {
							t.Errorf("%d holders at once", holders)
						}
						if h.Fences && lease.Fence() <= last {
							t.Errorf("fence %d after %d", lease.Fence(), last)
						}
						last = lease.Fence()
						holders--
						return nil
					})
					if err != nil {
						t.Errorf("Do: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// tryAcquire: TryAcquire asks once. For a held key it returns ErrNotAcquired and ErrHeld, and leaves nothing behind.
func tryAcquire(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease, err := ps[0].TryAcquire(bounded(t), k)
	if err != nil {
		t.Fatalf("TryAcquire of a free key: %v", err)
	}
	for i, p := range ps {
		if _, err := p.TryAcquire(bounded(t), k); !errors.Is(err, lock.ErrNotAcquired) || !errors.Is(err, lock.ErrHeld) {
			t.Errorf("process %d: TryAcquire of a held key: %v, want ErrNotAcquired and ErrHeld", i, err)
		}
	}
	if n := ps[1].tap.Count(Acquire); n != 1 {
		t.Errorf("asked the store %d times, want 1", n)
	}
	release(t, lease)
	// acquire, not TryAcquire: some nodes of a store may not know of the release yet.
	release(t, acquire(t, ps[1], k))
}

// closing: Close "ends all waits, and ends all leases", and "releases the keys in the store".
func closing(t *testing.T, h Harness) {
	ps, k := h.processes(t, 3, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0], k)
	waiter := make(chan error, 1)
	go func() {
		_, err := ps[1].Acquire(bounded(t), k)
		waiter <- err
	}()
	wait(t, "waiter", ps[1].tap.Seen(Wait, 1))
	for _, p := range []process{ps[1], ps[0]} {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	_, late := ps[0].Acquire(bounded(t), k)
	for who, err := range map[string]error{"the waiter": <-waiter, "a caller after Close": late} {
		if !errors.Is(err, lock.ErrNotAcquired) || !errors.Is(err, lock.ErrClosed) {
			t.Errorf("%s: %v, want ErrNotAcquired and ErrClosed", who, err)
		}
	}
	wait(t, "end of the lease", lease.Context().Done())
	release(t, acquire(t, ps[2], k))
}

// crashedHolder: a silent holder blocks the key until its TTL, or its session, has ended. By then its lease is over.
func crashedHolder(t *testing.T, h Harness) {
	need(t, h.Expires || h.Cut != nil, "Expires or Cut")
	// Only the crashed process has a short TTL, so that the TTL of the other bounds no request of this test.
	crashed, p, k := h.processes(t, 1, lock.Options{TTL: short})[0], h.processes(t, 1, lock.Options{TTL: long})[0], key(t)
	lost := acquire(t, crashed, k)
	crashed.tap.Cut()
	if h.Cut != nil {
		h.Cut(crashed.tap.Backend)
	}
	next := p.succeeds(t, h, lost, 0)
	if left := lost.Remaining(); left != 0 {
		t.Errorf("two holders: %v remain of a crashed holder's lease", left)
	}
	wait(t, "end of the lease", lost.Context().Done())
	if cause := context.Cause(lost.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	release(t, next)
}

// storeForgets: fences rise "even after [...] FLUSHALL, or a restart without persistence", and a release reports the loss.
func storeForgets(t *testing.T, h Harness) {
	need(t, h.Forget != nil, "Forget")
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0], k)
	h.Forget(t)
	next := ps[1].succeeds(t, h, lease, 0)
	isLost(t, lease)
	release(t, next)
}

// fenceRaised: "Raise lifts the lease's fence above a number that the guarded resource has already seen." If the caller
// has lost the lease, the fence stays.
func fenceRaised(t *testing.T, h Harness) {
	need(t, h.Expires && h.Fences, "Expires and Fences")
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
	next := mortal.succeeds(t, h, lease, 0)
	mortal.tap.Cut()
	last, before := p.succeeds(t, h, next, 0), next.Fence()
	if err := next.Raise(bounded(t), seen); err == nil || next.Fence() != before {
		t.Errorf("Raise of a lost lease: %v, fence %d", err, next.Fence())
	}
	release(t, last)
}

// holder: "Holder names the holder of a key, by its Options.Identity"; it returns "the zero Holder if the key is free".
// "After ForceRelease, the next fence is higher than any that the former holder can have used": the holder may have
// used 65,535 fences for hand-offs without telling the store.
func holder(t *testing.T, h Harness) {
	named := h.processes(t, 1, lock.Options{TTL: long, Identity: "shop-1@rack_2.eu"})[0]
	other := h.processes(t, 1, lock.Options{TTL: long})[0]
	for name, p := range map[string][2]process{"shop-1@rack_2.eu": {named, other}, "": {other, named}} {
		k := key(t) + "/.:%"
		free := func() {
			t.Helper()
			got, err := p[1].Holder(bounded(t), k)
			from, errForce := p[1].ForceRelease(bounded(t), k)
			if err != nil || errForce != nil || got != (lock.Holder{}) || from != got {
				t.Errorf("Holder and ForceRelease of a free key: %+v, %v, %+v, %v", got, err, from, errForce)
			}
		}
		free()
		lease := acquire(t, p[0], k)
		for _, ask := range []func(context.Context, string) (lock.Holder, error){p[0].Holder, p[1].Holder, p[1].ForceRelease} {
			got, err := ask(bounded(t), k)
			if err != nil || got.Identity != name || got.Owner == "" || got.Remaining < 0 || got.Remaining > long {
				t.Errorf("Holder: %+v, %v; want identity %q, and at most %v left", got, err, name, long)
			}
			if ago := time.Since(got.Since); !got.Since.IsZero() && ago.Abs() > time.Hour {
				t.Errorf("Holder: since %v, want now, about", got.Since)
			}
		}
		next := p[1].succeeds(t, h, lease, 1<<16-1)
		isLost(t, lease)
		release(t, next)
		free()
	}
}
