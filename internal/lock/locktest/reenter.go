package locktest

import (
	"context"
	"errors"
	"testing"

	"example.com/shop/internal/lock"
)

// reentrant: "A key that is held can be taken again, under the lease's context [...]; the last release frees it."
func reentrant(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	outer := acquire(t, ps[0], k)
	inner, err := ps[0].Acquire(outer.Context(), k)
	if err != nil {
		t.Fatalf("Acquire again: %v", err)
	}
	innermost, err := ps[0].TryAcquire(inner.Context(), k)
	if err != nil {
		t.Fatalf("TryAcquire again: %v", err)
	}
	if inner.Fence() != outer.Fence() || innermost.Key() != k {
		t.Errorf("fence %d of key %q, want %d of %q", inner.Fence(), innermost.Key(), outer.Fence(), k)
	}
	if n := ps[0].tap.Count(Acquire); n != 1 {
		t.Errorf("asked the store %d times, want 1", n)
	}
	for _, lease := range []*lock.Lease{innermost, inner} {
		release(t, lease)
		release(t, lease) // counts once
		if outer.Remaining() == 0 {
			t.Fatal("an inner release freed the key")
		}
		for i, p := range ps {
			if _, err := p.TryAcquire(bounded(t), k); !isNotAcquired(err) {
				t.Errorf("process %d, after an inner release: %v, want ErrNotAcquired", i, err)
			}
		}
	}
	release(t, outer)
	release(t, acquire(t, ps[1], k))
}

// reentrantEnds: a lease that was taken again lasts until its own release or Close. Neither the first lease's release ends
// it nor, if it was cut off from that, the first caller's context.
func reentrantEnds(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	ctx, cancel := context.WithCancel(bounded(t))
	first, err := ps[0].Acquire(ctx, k)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	again := make([]*lock.Lease, 2)
	for i := range again {
		if again[i], err = ps[0].Acquire(context.WithoutCancel(first.Context()), k); err != nil {
			t.Fatalf("Acquire again: %v", err)
		}
	}
	release(t, first)
	cancel()
	wait(t, "end of the first caller's context", first.Context().Done())
	if _, err := ps[1].TryAcquire(bounded(t), k); !isNotAcquired(err) {
		t.Errorf("TryAcquire: %v, want ErrNotAcquired", err)
	}
	for i, lease := range again {
		if err := lease.Context().Err(); err != nil || lease.Remaining() == 0 {
			t.Errorf("lease %d: %v, %v remain; want one that goes on", i, err, lease.Remaining())
		}
	}
	release(t, again[0])
	if cause := context.Cause(again[0].Context()); !errors.Is(cause, lock.ErrReleased) {
		t.Errorf("cause %v, want ErrReleased", cause)
	}
	if err := ps[0].Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if cause := context.Cause(again[1].Context()); !errors.Is(cause, lock.ErrClosed) {
		t.Errorf("cause %v, want ErrClosed", cause)
	}
}

// severalKeys: "AcquireAll takes several keys, all or none, in sorted order." Duplicates count once.
func severalKeys(t *testing.T, h Harness) {
	ps := h.processes(t, 2, lock.Options{TTL: long})
	a, b, c := key(t)+"a", key(t)+"b", key(t)+"c"

	all, err := ps[0].AcquireAll(bounded(t), c, a, b, a)
	if err != nil {
		t.Fatalf("AcquireAll: %v", err)
	}
	if n := ps[0].tap.Count(Acquire); n != 3 {
		t.Errorf("asked the store %d times, want once for each of 3 keys", n)
	}
	if all.Lease(b) == nil || all.Lease("another") != nil {
		t.Errorf("Lease(%q) = %v, Lease(another) = %v", b, all.Lease(b), all.Lease("another"))
	}
	for _, k := range []string{a, b, c} {
		if _, err := ps[1].TryAcquire(bounded(t), k); !isNotAcquired(err) {
			t.Errorf("TryAcquire(%q): %v, want ErrNotAcquired", k, err)
		}
	}
	if err := all.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}

	// None, if one cannot be had.
	held := acquire(t, ps[1], c)
	ctx, cancel := context.WithCancel(bounded(t))
	failed := make(chan error, 1)
	go func() {
		_, err := ps[0].AcquireAll(ctx, a, b, c)
		failed <- err
	}()
	wait(t, "waiting for the last key", ps[0].tap.Seen(Wait, 1))
	cancel()
	if err := <-failed; !isNotAcquired(err, context.Canceled) {
		t.Errorf("AcquireAll: %v, want ErrNotAcquired and context.Canceled", err)
	}
	for _, k := range []string{a, b} {
		release(t, acquire(t, ps[1], k))
	}
	release(t, held)

	if _, err := ps[0].AcquireAll(bounded(t)); !isNotAcquired(err, lock.ErrKey) {
		t.Errorf("AcquireAll of nothing: %v, want ErrKey", err)
	}
}

// severalKeysOneLost: the common context ends when any of the leases ends.
func severalKeysOneLost(t *testing.T, h Harness) {
	need(t, h.Forget != nil, "Forget")
	p := h.processes(t, 1, lock.Options{TTL: short})[0]
	ctx, k := bounded(t), key(t)
	all, err := p.AcquireAll(ctx, k+"a", k+"b")
	for ctx.Err() == nil && (errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrNoAnswer)) {
		all, err = p.AcquireAll(ctx, k+"a", k+"b") // the machine stood still: once more
	}
	if err != nil {
		t.Fatalf("AcquireAll: %v", err)
	}
	h.Forget(t)
	wait(t, "loss", all.Context().Done())
	if cause := context.Cause(all.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	if err := all.Release(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
}
