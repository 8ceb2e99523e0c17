package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// inFlight are the ways in which a request can be under way.
var inFlight = map[string]func(*Tap, Call){
	"request": (*Tap).HoldRequests,
	"answer":  (*Tap).HoldAnswers,
}

// start calls Acquire in a goroutine and returns where its error will be. A
// lease is given back: nil is its answer if it had ended with ctx, as that of a
// caller that gave up has to.
func start(ctx context.Context, l *lock.Locker, key string) <-chan error {
	failed := make(chan error, 1)
	go func() {
		lease, err := l.Acquire(ctx, key)
		if err == nil && lease.Context().Err() == nil {
			err = errors.New("a lease that goes on")
		}
		if lease != nil {
			err = errors.Join(err, lease.Release())
		}
		failed <- err
	}()
	return failed
}

// returned fails the test if the answer does not come.
func returned(t *testing.T, answer <-chan error) error {
	t.Helper()
	select {
	case err := <-answer:
		return err
	case <-time.After(patience):
		t.Fatalf("the caller has not returned for %v", patience)
		return nil
	}
}

// cancelledInFlight: "Cancelled while acquiring leaves nothing behind": not even
// if the store grants the key, or a place in its line, to one who has given up.
// Either the caller does not wait for the answer, or it gets what is over.
func cancelledInFlight(t *testing.T, h Harness) {
	for what, hold := range inFlight {
		for state, held := range map[string]bool{"free": false, "held": true} {
			t.Run(what+" for a "+state+" key", func(t *testing.T) {
				ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
				free := func() {}
				if held {
					lease := acquire(t, ps[1].Locker, k)
					free = func() { release(t, lease) }
				}
				hold(ps[0].tap, Acquire)
				ctx, cancel := context.WithCancel(bounded(t))
				failed := start(ctx, ps[0].Locker, k)
				wait(t, "request", ps[0].tap.Seen(Acquire, 1))
				cancel()
				ps[0].tap.Open()
				if err := returned(t, failed); err != nil && !isNotAcquired(err, context.Canceled) {
					t.Errorf("Acquire: %v, want ErrNotAcquired and context.Canceled", err)
				}
				nothingLeft(t, h, ps[0], ps[1], k, free)
			})
		}
	}
}

// cancelledInSilence: the same of a store that does not answer. The caller
// returns by its own deadline, or by the one that each request has: a third of
// the TTL, a second at least.
func cancelledInSilence(t *testing.T, h Harness) {
	for what, hold := range inFlight {
		for whose, c := range map[string]struct{ ttl, deadline time.Duration }{
			"the caller's":  {ttl: long, deadline: short},
			"the request's": {ttl: short, deadline: patience},
		} {
			t.Run(what+" until "+whose+" deadline", func(t *testing.T) {
				ps, k := append(h.processes(t, 1, lock.Options{TTL: c.ttl}), h.processes(t, 1, lock.Options{TTL: long})...), key(t)
				hold(ps[0].tap, Acquire)
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				failed := start(ctx, ps[0].Locker, k)
				wait(t, "request", ps[0].tap.Seen(Acquire, 1))
				cancel()
				// ctx.Err(): on a busy machine the deadline may have come first.
				if err := returned(t, failed); !isNotAcquired(err, ctx.Err()) {
					t.Errorf("Acquire: %v, want ErrNotAcquired and %v", err, ctx.Err())
				}
				ps[0].tap.Open()
				nothingLeft(t, h, ps[0], ps[1], k, func() {})
			})
		}
	}
}

// nothingLeft checks that the store has forgotten the process that gave up, long
// before any TTL: it blocks nobody, and is not called in anybody's place.
func nothingLeft(t *testing.T, h Harness, gone, other process, key string, free func()) {
	t.Helper()
	wait(t, "release", gone.tap.Answered(Release, 1))
	free()
	release(t, acquire(t, other.Locker, key))
	// A store that does not notify may be one of many nodes, of which some do not
	// know of a release yet.
	if n := other.tap.Count(Wait); h.Notifies && n != 0 {
		t.Errorf("waited %d times for a key that nobody holds", n)
	}
	giveBack(t, acquire(t, gone.Locker, key))
}
