package locktest

import (
	"context"
	"testing"

	"example.com/shop/internal/lock"
)

// cancelledInStoreLine: one who gives up in the store's line is not called, and
// does not keep those behind it waiting.
func cancelledInStoreLine(t *testing.T, h Harness) {
	ps, k := h.processes(t, 3, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0].Locker, k)
	ctx, cancel := context.WithCancel(bounded(t))
	gone := start(ctx, ps[1].Locker, k)
	wait(t, "first waiter", ps[1].tap.Seen(Wait, 1))
	second := make(chan error, 1)
	go func() {
		next, err := ps[2].Acquire(bounded(t), k)
		if err == nil {
			err = next.Release()
		}
		second <- err
	}()
	wait(t, "second waiter", ps[2].tap.Seen(Wait, 1))
	ps[1].tap.HoldRequests(Release) // which the one who gives up does not wait for
	cancel()
	if err := returned(t, gone); !isNotAcquired(err, context.Canceled) {
		t.Errorf("Acquire: %v, want ErrNotAcquired and context.Canceled", err)
	}
	ps[1].tap.Open()
	wait(t, "leaving the line", ps[1].tap.Answered(Release, 1))
	release(t, lease)
	if err := returned(t, second); err != nil {
		t.Errorf("the one behind: %v", err)
	}
}

// cancelledInProcessLine: the same for those who wait inside the process.
func cancelledInProcessLine(t *testing.T, h Harness) {
	p, k := h.processes(t, 1, lock.Options{TTL: long})[0], key(t)
	lease := acquire(t, p.Locker, k)
	ctx, cancel := context.WithCancelCause(bounded(t))
	gone := start(ctx, p.Locker, k)
	inLine(t, p, k, 1)
	cancel(errShopClosed)
	if err := returned(t, gone); !isNotAcquired(err, context.Canceled, errShopClosed) {
		t.Errorf("Acquire: %v, want ErrNotAcquired, context.Canceled and its cause", err)
	}
	release(t, lease)
	release(t, acquire(t, p.Locker, k))
}
