package locksim

import (
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/lock"
)

// holdTime is mostly short, sometimes longer than the TTL.
func (k *worker) holdTime(d dice) time.Duration {
	ttl := k.link.opt.TTL
	return d.between(0, oneOf(d, 100*time.Microsecond, prompt, 10*time.Millisecond, 20*time.Millisecond, ttl/4, 3*ttl/2))
}

// hold does under a lease what shops do, and what they should not do.
func (k *worker) hold(e *lease, d dice) {
	time.Sleep(k.holdTime(d))
	if d.chance(0.15) {
		k.takeAgain(e, d)
	}
	k.write(e, d)
	if d.chance(0.1) { // does not look at its context
		time.Sleep(2 * k.link.opt.TTL)
		k.write(e, d)
	}
	if other := fmt.Sprintf("%s/w%d", k.link.name, 1+d.IntN(k.link.workers)); d.chance(0.3) && k.link.giveUp(other) {
		k.note("makes %s give up", other) // it may be the next in line
	}
	k.release(e)
}

// write writes to the database, if the lease is trusted; sometimes, as after a
// pause, long after it looked.
func (k *worker) write(e *lease, d dice) {
	fence := e.Fence()
	if !e.trusted() {
		k.note("does not trust %s any more", e.key)
		return
	}
	paused := d.chance(0.1)
	if paused {
		time.Sleep(d.between(0, 2*k.link.opt.TTL))
	}
	ok, seen := k.world.database.write(e, fence)
	k.note("writes %s with %d: %v", e.key, k.world.fence(fence), ok)
	if ok || paused || fence == seen || !e.trusted() {
		return
	}
	// Others have written with higher fences: they came later, or the store's
	// fences went down.
	err := e.Raise(e.Context(), seen)
	k.note("raises %s above %d: %v", e.key, k.world.fence(seen), err)
	if err != nil {
		return
	}
	raised := e.Fence()
	k.link.watch.raised(e.holding, raised)
	k.world.server.set(func() { e.number = k.world.server.grants })
	if raised <= seen {
		k.broke("raised the fence of %s to %d, want more than %d", e.key, raised, seen)
	}
	ok, _ = k.world.database.write(e, raised)
	k.note("writes %s with %d: %v", e.key, k.world.fence(raised), ok)
}

// takeAgain: "A key that is held can be taken again, under the lease's context".
func (k *worker) takeAgain(e *lease, d dice) {
	if !e.trusted() {
		return
	}
	before := time.Now()
	again, err := k.locker.Acquire(e.Context(), e.key)
	if err != nil {
		if e.trusted() {
			k.broke("takes %s again: %v", e.key, err)
		}
		return
	}
	if now := time.Now(); now.After(before) || again.Fence() != e.Fence() {
		k.broke("took %s again after %v, fence %d, want %d at once", e.key, now.Sub(before), again.Fence(), e.Fence())
	}
	time.Sleep(k.holdTime(d))
	trusted := e.trusted()
	if err := again.Release(); err != nil && trusted {
		k.broke("inner release of %s: %v", e.key, err)
	}
	if trusted && !e.trusted() {
		k.broke("an inner release freed %s", e.key)
	}
}

// release: "It works whatever became of any context, and tells if the lease was
// lost", in a bounded time.
func (k *worker) release(e *lease) {
	trusted, began := e.Remaining() > 0, time.Now()
	e.ends()
	err := e.Release()
	k.note("releases %s: %v", e.key, err)
	if took, most := time.Since(began), max(k.link.opt.TTL/3, time.Second)+lingering; took > most {
		k.broke("Release of %s took %v, want at most %v", e.key, took, most)
	}
	if trusted && k.world.plan.weather.calm() && err != nil {
		k.broke("Release of %s: %v", e.key, err)
	}
	if !trusted && !errors.Is(err, lock.ErrLost) {
		k.broke("Release of %s, which was over: %v, want ErrLost", e.key, err)
	}
	if again := e.Release(); !errors.Is(again, err) {
		k.broke("second Release of %s: %v, want %v", e.key, again, err)
	}
	if e.Context().Err() == nil || e.Remaining() > 0 {
		k.broke("%s goes on after Release", e.key)
	}
}
