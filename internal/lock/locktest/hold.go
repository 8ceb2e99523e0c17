package locktest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"example.com/shop/internal/lock"
)

// exclusion: of all leases on a key, one at a time is trusted, and fences rise from each to the next, whichever process has
// it.
func exclusion(t *testing.T, h Harness) {
	const lockers, goroutines, turns = 4, 64, 4
	k := key(t)
	var (
		holders int // guarded by nothing but the lock: the race detector watches
		count   int
		last    int64
		wg      sync.WaitGroup
	)
	for _, p := range h.processes(t, lockers, lock.Options{TTL: long}) {
		for range goroutines / lockers {
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
						count++
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
	if want := goroutines * turns; count != want {
		t.Errorf("%d turns, want %d", count, want)
	}
}

// tryAcquire: asks once; held is ErrNotAcquired, and leaves nothing behind.
func tryAcquire(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease, err := ps[0].TryAcquire(bounded(t), k)
	if err != nil {
		t.Fatalf("TryAcquire of a free key: %v", err)
	}
	for i, p := range ps {
		if _, err := p.TryAcquire(bounded(t), k); !isNotAcquired(err) {
			t.Errorf("process %d: TryAcquire of a held key: %v, want ErrNotAcquired", i, err)
		}
	}
	if n := ps[1].tap.Count(Acquire); n != 1 {
		t.Errorf("asked the store %d times, want 1", n)
	}
	release(t, lease)
	// Not tried once: of a store of many nodes some may not know of the release.
	release(t, acquire(t, ps[1], k))
}

// closing: Close ends waiting, and gives held keys back.
func closing(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lease := acquire(t, ps[0], k)
	first := turn(t, ps[1], k)
	wait(t, "waiter", ps[1].tap.Seen(Wait, 1))
	second := turn(t, ps[1], k)
	inQueue(t, ps[1], 1)
	for _, p := range []process{ps[1], ps[0]} {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for where, waiter := range map[string]<-chan error{"store": first, "process": second} {
		if err := <-waiter; !isNotAcquired(err, lock.ErrClosed) {
			t.Errorf("waiter in the queue of the %s: %v, want ErrNotAcquired and ErrClosed", where, err)
		}
	}
	wait(t, "end of the lease", lease.Context().Done())
	if _, err := ps[0].Acquire(bounded(t), k); !isNotAcquired(err, lock.ErrClosed) {
		t.Errorf("Acquire after Close: %v, want ErrNotAcquired and ErrClosed", err)
	}
	release(t, acquire(t, h.processes(t, 1, lock.Options{TTL: long})[0], k))
}

// deadline: "A timer ends its context then, and no request to the store can delay that." The next holder finds the former
// one's context ended already.
func deadline(t *testing.T, h Harness) {
	for name, fault := range map[string]func(process){
		"renewal hangs":          func(p process) { p.tap.HoldRequests(Renew) },
		"renewal's answer hangs": func(p process) { p.tap.HoldAnswers(Renew) },
		"store cannot be heard":  h.cut,
	} {
		t.Run(name, func(t *testing.T) {
			need(t, h.recovers(), "Expires or Cut")
			for enough := bounded(t); ; {
				stood := standstill(t)
				// The margin is for timers that fire late, as they do on a busy machine.
				ps, k := h.processes(t, 2, lock.Options{TTL: short, Margin: short / 3}), key(t)
				lease := acquire(t, ps[0], k)
				fault(ps[0])
				next := acquire(t, ps[1], k)
				alive, left := lease.Context().Err() == nil, lease.Remaining()
				releaseAnyway(t, next)
				if alive && left == 0 && stood() > short/6 && enough.Err() == nil {
					continue
				}
				if alive {
					t.Error("two live holders: the first one's context goes on")
				} else if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
					t.Errorf("cause %v, want ErrLost", cause)
				}
				if left != 0 {
					t.Errorf("%v remain of a lost lease", left)
				}
				return
			}
		})
	}
}

// crashedHolder: a holder that the store hears no more of blocks the key until its TTL has passed, or its session, and no
// longer.
func crashedHolder(t *testing.T, h Harness) {
	need(t, h.recovers(), "Expires or Cut")
	// Only one dies: the TTL of the others bounds no request of this test.
	crashed, ps, k := h.processes(t, 1, lock.Options{TTL: short})[0], h.processes(t, 2, lock.Options{TTL: long}), key(t)
	lost := acquire(t, crashed, k)
	h.cut(crashed)
	waiter := turn(t, ps[0], k)
	next := acquire(t, ps[1], k)
	if h.Fences && next.Fence() <= lost.Fence() {
		t.Errorf("fence %d after %d of a crashed holder", next.Fence(), lost.Fence())
	}
	release(t, next)
	if err := <-waiter; err != nil {
		t.Errorf("waiter of a crashed holder: %v", err)
	}
}

// renewal: "While it is held, a lease is renewed": it outlives its TTL.
func renewal(t *testing.T, h Harness) {
	ps, k := h.processes(t, 2, lock.Options{TTL: short}), key(t)
	for enough := bounded(t); ; {
		if enough.Err() != nil {
			t.Fatalf("no renewed lease has outlived its TTL for %v", patience)
		}
		lease := acquire(t, ps[0], k)
		select {
		case <-ps[0].tap.Seen(Renew, ps[0].tap.Count(Renew)+7): // two TTLs
		case <-lease.Context().Done(): // the machine stood still: once more
			continue
		}
		other, err := ps[1].TryAcquire(bounded(t), k)
		if err == nil && lease.Remaining() == 0 { // it stood still now
			releaseAnyway(t, other)
			continue
		}
		if !isNotAcquired(err) {
			t.Fatalf("TryAcquire of a renewed key: %v, want ErrNotAcquired", err)
		}
		releaseAnyway(t, lease)
		return
	}
}

// renewalNeverRevives: "Renew never takes a key that is free", nor one that another owner holds.
func renewalNeverRevives(t *testing.T, h Harness) {
	need(t, h.Expires, "Expires")
	b, k := h.backend(t), key(t)
	first := owner{b, lock.Claim{Key: k, Owner: "first", TTL: short}}
	first.gets(t)
	// Renewals with a long TTL would keep the key for ever once they revive it.
	second := owner{b, lock.Claim{Key: k, Owner: "second", TTL: long, Queue: true}}
	for g, err := b.Acquire(bounded(t), second.claim); g.Held || err != nil; g, err = b.Acquire(bounded(t), second.claim) {
		if err == nil {
			err = b.Wait(bounded(t), second.claim, g)
		}
		if err != nil {
			t.Fatalf("Acquire or Wait: %v", err)
		}
	}
	if _, err := b.Renew(bounded(t), first.claim); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew of an expired lease: %v, want ErrLost", err)
	}
	second.frees(t)
	if _, err := b.Renew(bounded(t), first.claim); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Renew of a free key: %v, want ErrLost", err)
	}
	second.gets(t)
}
