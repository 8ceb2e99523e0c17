package locktest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/lock"
)

// owner is one claim on a backend, without a Locker.
type owner struct {
	lock.Backend
	claim lock.Claim
}

// gets fails the test unless the owner gets the key at once. It returns the fence.
func (o owner) gets(t *testing.T) (fence int64) {
	t.Helper()
	for {
		sent := time.Now()
		g, err := o.Acquire(bounded(t), o.claim)
		switch stoodStill := time.Since(sent) > o.claim.TTL/2; {
		case err == nil && !g.Held:
			return g.Fence
		case err != nil || !stoodStill: // a lease may end before the answer arrives
			t.Fatalf("Acquire by %s: %+v, %v; want the key", o.claim.Owner, g, err)
		}
	}
}

// queues fails the test unless the key is held. The owner then waits in the store's queue.
func (o owner) queues(t *testing.T) {
	t.Helper()
	if g, err := o.Acquire(bounded(t), o.claim); err != nil || !g.Held {
		t.Fatalf("Acquire by %s: %+v, %v; want held by another", o.claim.Owner, g, err)
	}
}

// isNotified fails the test if the owner is not notified.
func (o owner) isNotified(t *testing.T) {
	t.Helper()
	if err := o.Wait(bounded(t), o.claim, lock.Grant{Held: true, Retry: long}); err != nil {
		t.Fatalf("Wait by %s: %v", o.claim.Owner, err)
	}
}

// givesUp leaves the queue. If a key was kept for the owner and is passed on, the store may count this as a release.
func (o owner) givesUp(t *testing.T) {
	t.Helper()
	if err := o.Release(bounded(t), o.claim); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Fatalf("Release by %s, which waits: %v, want nil or ErrLost", o.claim.Owner, err)
	}
}

func (o owner) frees(t *testing.T) {
	t.Helper()
	if err := o.Release(bounded(t), o.claim); err != nil {
		t.Fatalf("Release by %s: %v", o.claim.Owner, err)
	}
}

// holdsNothing fails the test unless Renew and Release report a loss.
func (o owner) holdsNothing(t *testing.T) {
	t.Helper()
	_, renewed := o.Renew(bounded(t), o.claim)
	if released := o.Release(bounded(t), o.claim); !errors.Is(renewed, lock.ErrLost) || !errors.Is(released, lock.ErrLost) {
		t.Errorf("Renew and Release by %q: %v and %v, want ErrLost", o.claim.Owner, renewed, released)
	}
}

// renewal: Renew gives a lease its full TTL again.
func renewal(t *testing.T, h Harness) {
	need(t, h.Expires, "Expires")
	b, k, ctx := h.backend(t), key(t), bounded(t)
	holder := owner{b, lock.Claim{Key: k, Owner: "holder", TTL: short}}
	renewed := holder
	renewed.claim.TTL = long
	err := lock.ErrLost
	for errors.Is(err, lock.ErrLost) && ctx.Err() == nil { // again if the machine stood still
		holder.gets(t)
		_, err = renewed.Renew(ctx, renewed.claim)
	}
	if err != nil {
		t.Fatalf("Renew: %v", err)
	}
	time.Sleep(2 * short)
	owner{b, lock.Claim{Key: k, Owner: "other", TTL: short}}.queues(t)
	renewed.frees(t)
}

// renewalNeverRevives: "a renewal never takes a key whose lease has run out", nor a key that another owner holds.
func renewalNeverRevives(t *testing.T, h Harness) {
	need(t, h.Expires, "Expires")
	b, k := h.backend(t), key(t)
	first := owner{b, lock.Claim{Key: k, Owner: "first", TTL: short}}
	first.gets(t)
	// If a renewal with a long TTL revived the lease, it would keep the key for ever.
	second := owner{b, lock.Claim{Key: k, Owner: "second", TTL: long, Queue: true}}
	for g, err := b.Acquire(bounded(t), second.claim); g.Held || err != nil; g, err = b.Acquire(bounded(t), second.claim) {
		if err == nil {
			err = b.Wait(bounded(t), second.claim, g)
		}
		if err != nil {
			t.Fatalf("Acquire or Wait: %v", err)
		}
	}
	first.holdsNothing(t)
	second.frees(t)
	first.holdsNothing(t)
	second.gets(t)
}

// ownerAsksAgain: "A request that is repeated after a lost reply finds its own lease." A release tells the store the
// highest used fence.
func ownerAsksAgain(t *testing.T, h Harness) {
	o := owner{h.backend(t), lock.Claim{Key: key(t), Owner: "me", TTL: long}}
	var last int64
	for range 3 {
		fence := o.gets(t)
		if h.Fences && fence <= last {
			t.Errorf("fence %d after %d", fence, last)
		}
		last = fence
	}
	o.claim.Fence = last + 1000
	o.frees(t)
	o.givesUp(t) // a repeated request: the store may remember the last release
	if fence := o.gets(t); h.Fences && fence <= last+1000 {
		t.Errorf("fence %d after a release that told of %d", fence, last+1000)
	}
	o.frees(t)
}

// ownerComparedWhole: "Owners are [...] compared whole", never by prefix. "Release compares the owner".
func ownerComparedWhole(t *testing.T, h Harness) {
	b, k := h.backend(t), key(t)
	holder := owner{b, lock.Claim{Key: k, Owner: "abcdef", TTL: long}}
	holder.claim.Fence = holder.gets(t)
	holder.frees(t)
	holder.claim.Fence = holder.gets(t) // the store may have a shorter way for a key that it has seen before
	for _, name := range []string{"abc", "abcdefg", "ABCDEF", "abcdef ", "*"} {
		other := owner{b, lock.Claim{Key: k, Owner: name, TTL: long, Fence: holder.claim.Fence}}
		other.queues(t) // enters no queue: its claim has no Queue
		other.holdsNothing(t)
	}
	holder.frees(t)
}

// wokenByRelease: "The release wakes a waiter, which does not poll. Each release wakes at most one process", in the
// order in which they came: the holder's TTL is longer than the test.
func wokenByRelease(t *testing.T, h Harness) {
	need(t, h.Notifies, "Notifies")
	const waiters = 8
	ps, k := h.processes(t, 1+waiters, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0], k)
	type grant struct {
		*lock.Lease
		waiter int
	}
	grants := make(chan grant, waiters)
	for i, p := range ps[1:] {
		go func() {
			next, err := p.Acquire(bounded(t), k)
			if err != nil {
				t.Errorf("Acquire: %v", err)
			}
			grants <- grant{next, i}
		}()
		wait(t, "waiter", p.tap.Seen(Wait, 1))
	}
	asked := func() (n int) {
		for _, p := range ps[1:] {
			n += p.tap.Count(Acquire)
		}
		return n
	}
	for i := range waiters {
		before := asked()
		release(t, lease)
		next := <-grants
		if lease = next.Lease; lease == nil {
			return
		}
		if next.waiter != i {
			t.Errorf("served waiter %d in the place of %d", next.waiter, i)
		}
		if n := asked() - before; n != 1 {
			t.Errorf("a release made %d ask again, want 1", n)
		}
	}
	release(t, lease)
}

// givingUpLeavesQueue: an owner that gives up has left the queue when Release returns. A later release does not notify
// it in place of an owner that stays. The owner that stays is notified at once: after a lost notification, it would
// wait for the TTL, which is longer than the test.
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
		one := h.backend(t)
		for whose, connect := range map[string]func() lock.Backend{
			"several processes": func() lock.Backend { return h.backend(t) },
			"one process":       func() lock.Backend { return one },
		} {
			t.Run(name+", "+whose, func(t *testing.T) { giveUp(t, queue, connect) })
		}
	}
}

func giveUp(t *testing.T, queue string, connect func() lock.Backend) {
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
}
