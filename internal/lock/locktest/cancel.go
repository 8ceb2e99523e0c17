package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// start calls Acquire in a goroutine and returns where its error will be. A lease is given back: nil is its answer if it
// had ended with ctx, as that of a caller that gave up has to.
func start(ctx context.Context, p process, key string) <-chan error {
	failed := make(chan error, 1)
	go func() {
		lease, err := p.Acquire(ctx, key)
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

// cancelledInFlight: "A caller that gives up leaves nothing behind": not even if the store grants the key, or a place in
// its queue, after that. Either the caller does not wait for the answer, or it gets a lease that is over.
func cancelledInFlight(t *testing.T, h Harness) {
	for what, hold := range map[string]func(*Tap, Call){
		"request": (*Tap).HoldRequests,
		"answer":  (*Tap).HoldAnswers,
	} {
		for state, held := range map[string]bool{"free": false, "held": true} {
			t.Run(what+" for a "+state+" key", func(t *testing.T) {
				ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
				free := func() {}
				if held {
					lease := acquire(t, ps[1], k)
					free = func() { release(t, lease) }
				}
				hold(ps[0].tap, Acquire)
				ctx, cancel := context.WithCancel(bounded(t))
				failed := start(ctx, ps[0], k)
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

// nothingLeft checks that the store has forgotten the process that gave up, long before any TTL: it blocks no other, and
// takes no other's notification.
func nothingLeft(t *testing.T, h Harness, gone, other process, key string, free func()) {
	t.Helper()
	wait(t, "release", gone.tap.Answered(Release, 1))
	free()
	release(t, acquire(t, other, key))
	// A store that does not notify may be one of many nodes, of which some do not know of a release yet.
	if n := other.tap.Count(Wait); h.Notifies && n != 0 {
		t.Errorf("waited %d times for a key that no process holds", n)
	}
	releaseAnyway(t, acquire(t, gone, key))
}

// cancelledInStoreQueue: a waiter that gives up in the store's queue is not notified, and does not keep those behind it
// waiting.
func cancelledInStoreQueue(t *testing.T, h Harness) {
	ps, k := h.processes(t, 3, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0], k)
	ctx, cancel := context.WithCancel(bounded(t))
	gone := start(ctx, ps[1], k)
	wait(t, "first waiter", ps[1].tap.Seen(Wait, 1))
	second := turn(t, ps[2], k)
	wait(t, "second waiter", ps[2].tap.Seen(Wait, 1))
	ps[1].tap.HoldRequests(Release) // which a caller that gives up does not wait for
	cancel()
	if err := returned(t, gone); !isNotAcquired(err, context.Canceled) {
		t.Errorf("Acquire: %v, want ErrNotAcquired and context.Canceled", err)
	}
	ps[1].tap.Open()
	wait(t, "leaving the queue", ps[1].tap.Answered(Release, 1))
	release(t, lease)
	if err := returned(t, second); err != nil {
		t.Errorf("the waiter behind: %v", err)
	}
}

// cancelledInProcessQueue: the same for those who wait inside the process.
func cancelledInProcessQueue(t *testing.T, h Harness) {
	p, k := h.processes(t, 1, lock.Options{TTL: long})[0], key(t)
	lease := acquire(t, p, k)
	ctx, cancel := context.WithCancelCause(bounded(t))
	gone := start(ctx, p, k)
	inQueue(t, p, 1)
	cancel(errShopClosed)
	if err := returned(t, gone); !isNotAcquired(err, context.Canceled, errShopClosed) {
		t.Errorf("Acquire: %v, want ErrNotAcquired, context.Canceled and its cause", err)
	}
	release(t, lease)
	release(t, acquire(t, p, k))
}

// givingUpLeavesQueue: an owner that gives up has left the queue when Release returns. No later release notifies it in
// place of an owner that stays: that one is notified at once, where a lost notification would take the TTL, longer than the
// test.
func givingUpLeavesQueue(t *testing.T, h Harness) {
	need(t, h.Notifies, "Notifies")
	for name, queue := range map[string]string{ // s stays, q gives up, Q gives up when it is notified
		"in front":            "qs",
		"behind":              "sq",
		"in front and behind": "qsq",
		"two in front":        "qqs",
		"in its turn":         "Qs",
		"two in their turns":  "QQs",
	} {
		for whose, connect := range map[string]func() lock.Backend{
			"several processes": func() lock.Backend { return h.backend(t) },
			"one process":       same(h.backend(t)),
		} {
			t.Run(name+", "+whose, func(t *testing.T) {
				if strings.Contains(queue, "Q") {
					need(t, h.FirstInFirstOut, "FirstInFirstOut")
				}
				k := key(t)
				holder := owner{connect(), lock.Claim{Key: k, Owner: "holder", TTL: long}}
				holder.gets(t)
				var all []owner
				for i := range queue {
					o := owner{connect(), lock.Claim{Key: k, Owner: fmt.Sprint("waiter", i), TTL: long, Queue: true}}
					o.queues(t)
					all = append(all, o)
				}
				for i, o := range all {
					if queue[i] == 'q' {
						o.givesUp(t)
					}
				}
				holder.frees(t)
				for i, o := range all {
					switch queue[i] {
					case 'Q':
						o.isNotified(t)
						o.givesUp(t)
					case 's':
						o.isNotified(t)
						o.gets(t)
						o.frees(t)
					}
				}
				holder.gets(t)
				holder.frees(t)
			})
		}
	}
}

// same returns one backend again and again.
func same(b lock.Backend) func() lock.Backend { return func() lock.Backend { return b } }
