package locktest

import (
	"context"
	"testing"

	"example.com/shop/internal/lock"
)

// start calls Acquire in a goroutine and returns where its error will be.
func start(ctx context.Context, l *lock.Locker, key string) <-chan error {
	failed := make(chan error, 1)
	go func() {
		_, err := l.Acquire(ctx, key)
		failed <- err
	}()
	return failed
}

// cancelledInFlight: "Cancelled while acquiring leaves nothing behind": not even
// if the store grants the key after the caller has gone. The caller does not
// wait for the answer.
func cancelledInFlight(t *testing.T, h Harness) {
	for _, hold := range []func(*Tap, Call){(*Tap).HoldRequests, (*Tap).HoldAnswers} {
		ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
		hold(ps[0].tap, Acquire)
		ctx, cancel := context.WithCancel(bounded(t))
		failed := start(ctx, ps[0].Locker, k)
		wait(t, "request", ps[0].tap.Seen(Acquire, 1))
		cancel()
		if err := <-failed; !isNotAcquired(err, context.Canceled) {
			t.Errorf("Acquire: %v, want ErrNotAcquired and context.Canceled", err)
		}
		ps[0].tap.Open()
		wait(t, "release", ps[0].tap.Seen(Release, 1))
		release(t, acquire(t, ps[1].Locker, k))
		release(t, acquire(t, ps[0].Locker, k))
	}
}

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
	cancel()
	if err := <-gone; !isNotAcquired(err, context.Canceled) {
		t.Errorf("Acquire: %v, want ErrNotAcquired and context.Canceled", err)
	}
	wait(t, "leaving the line", ps[1].tap.Seen(Release, 1))
	release(t, lease)
	if err := <-second; err != nil {
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
	if err := <-gone; !isNotAcquired(err, context.Canceled, errShopClosed) {
		t.Errorf("Acquire: %v, want ErrNotAcquired, context.Canceled and its cause", err)
	}
	release(t, lease)
	release(t, acquire(t, p.Locker, k))
}
