package locktest

import (
	"context"
	"errors"
	"testing"

	"example.com/shop/internal/lock"
)

var errShopClosed = errors.New("the shop closes")

// releaseAfterCancel: Release "works on a cancelled context [...] and is safe to
// call twice".
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
	next := acquire(t, ps[1].Locker, k)
	release(t, lease) // not the next one's
	if left := next.Remaining(); left == 0 {
		t.Error("a second Release ended another lease")
	}
	release(t, next)
	if !errors.Is(context.Cause(next.Context()), lock.ErrReleased) {
		t.Errorf("cause %v, want ErrReleased", context.Cause(next.Context()))
	}
}

// releaseTellsLoss: Release "reports ErrLost if the lease was gone".
func releaseTellsLoss(t *testing.T, h Harness) {
	need(t, h.Forget != nil, "Forget")
	p, k := h.processes(t, 1, lock.Options{TTL: long})[0], key(t)
	lease := acquire(t, p.Locker, k)
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
