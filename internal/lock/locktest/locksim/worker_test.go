package locksim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lock"
)

// worker is a goroutine of a process that takes turns under the lock.
type worker struct {
	*client
	who    string
	giveUp atomic.Pointer[context.CancelFunc] // ends its wait; nil while it does not wait
}

func (w *worker) log(what string, args ...any) { w.note(w.who, what, args...) }

func (w *worker) broke(rule string, args ...any) { w.sim.broke(w.who, rule, args...) }

// work takes turns until the faults are over, and then a last one.
func (w *worker) work() {
	for n := 0; !w.healed(); n++ {
		d := w.plan.draw("turn", w.who, strconv.Itoa(n))
		time.Sleep(d.between(0, oneOf(d, prompt, 50*time.Millisecond, w.options.TTL)))
		w.turn(d)
		if n == 100 {
			time.Sleep(w.plan.faulty - time.Since(w.start)) // a short TTL would go on for long
		}
	}
	w.lastTurn()
}

// turn is one turn of a random kind.
func (w *worker) turn(d draw) {
	key := oneOf(d, w.plan.keys...)
	ctx, end, cancel := w.context(d)
	defer cancel()
	kind := d.IntN(10)
	if kind == 1 && !w.plan.profile.calm() { // one lease waits for the next: not to be measured
		w.takeAll(ctx, d)
		return
	}
	asked, acquire, waiting := time.Now(), w.locker.Acquire, time.Now()
	if kind == 0 {
		acquire, waiting = w.locker.TryAcquire, time.Time{}
	}
	w.log("wants %s until %v, waits: %v", key, end.Sub(w.start), kind != 0)
	w.giveUp.Store(&cancel)
	got, err := acquire(ctx, key)
	w.giveUp.Store(nil)
	w.checkReturn(ctx, key, asked, end, err)
	if err == nil {
		w.hold(w.begin(key, waiting, got), d)
	}
}

// context returns a context that ends by itself in some turns, and the time of its end. The end may come while the caller
// waits, while it holds the key, or never.
func (w *worker) context(d draw) (ctx context.Context, end time.Time, cancel context.CancelFunc) {
	ctx, stop := context.WithCancel(context.Background())
	if !d.chance(0.4) {
		return ctx, never(), stop
	}
	after := d.between(0, oneOf(d, 4*prompt, w.options.TTL, 3*w.options.TTL))
	end = time.Now().Add(after)
	if d.chance(0.5) {
		stop()
		ctx, stop = context.WithDeadline(context.Background(), end)
		return ctx, end, stop
	}
	timer := time.AfterFunc(after, stop)
	return ctx, end, func() { timer.Stop(); stop() }
}

// never is later than any plan takes.
func never() time.Time { return time.Now().Add(1000 * time.Hour) }

// takeAll takes all keys of the plan.
func (w *worker) takeAll(ctx context.Context, d draw) {
	keys := slices.Concat(w.plan.keys, w.plan.keys[:1])
	d.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	w.log("wants all of %v", keys)
	all, err := w.locker.AcquireAll(ctx, keys...)
	if err != nil {
		if !errors.Is(err, lock.ErrNotAcquired) {
			w.broke("AcquireAll: %v, want ErrNotAcquired", err)
		}
		return
	}
	var leases []*lease
	for _, key := range w.plan.keys {
		got := all.Lease(key)
		if got == nil {
			w.broke("AcquireAll has no lease on %s", key)
			return
		}
		if got.Remaining() > 0 { // else it was lost while the next was waited for
			leases = append(leases, w.begin(key, time.Time{}, got))
		}
	}
	for _, e := range leases {
		time.Sleep(w.holdTime(d))
		if !e.trusted() {
			w.checkEnded(all.Context(), e.Lease)
		}
	}
	for _, e := range leases {
		e.ends()
	}
	w.log("releases all: %v", all.Release())
}

// checkReturn: "It returns at once, or, if it is cancelled during a request, when that has ended, at its deadline at
// the latest." "If ctx ended, errors.Is also holds for ctx.Err()".
func (w *worker) checkReturn(ctx context.Context, key string, asked, end time.Time, err error) {
	now, until, request := time.Now(), end.Add(lingering), max(w.options.TTL/3, time.Second)+lingering
	if _, ends := ctx.Deadline(); !ends {
		until = end.Add(request)
	}
	if most := asked.Add(w.options.MaxWait + lingering); w.options.MaxWait >= 0 && most.Before(until) {
		until = most
	}
	if at := w.closed.Load(); at != nil && at.After(asked) && at.Add(request).Before(until) {
		until = at.Add(request)
	}
	if late := now.Sub(until); late > 0 {
		w.broke("Acquire of %s returned %v late", key, late)
	}
	if err == nil {
		return
	}
	w.log("has not got %s: %v", key, err)
	if !errors.Is(err, lock.ErrNotAcquired) {
		w.broke("Acquire of %s: %v, want ErrNotAcquired", key, err)
	}
	if (now.After(end) || now.Equal(end) && w.plan.grain == time.Nanosecond) && !errors.Is(err, ctx.Err()) {
		w.broke("Acquire of %s: %v, want %v", key, err, ctx.Err())
	}
	well := w.plan.profile.calm() || asked.After(w.start.Add(w.plan.faulty))
	held := errors.Is(err, lock.ErrHeld)
	own := errors.Is(err, lock.ErrTimeout) || errors.Is(err, lock.ErrQueueFull) || errors.Is(err, lock.ErrClosed)
	if well && ctx.Err() == nil && !own && !held {
		w.broke("Acquire of %s: %v, though nothing was wrong", key, err)
	}
}

// holdTime is mostly short, sometimes longer than the TTL.
func (w *worker) holdTime(d draw) time.Duration {
	ttl := w.options.TTL
	return d.between(0, oneOf(d, 100*time.Microsecond, prompt, 10*time.Millisecond, 20*time.Millisecond, ttl/4, 3*ttl/2))
}

// hold uses a lease as shops do, and as shops should not.
func (w *worker) hold(e *lease, d draw) {
	time.Sleep(w.holdTime(d))
	if d.chance(0.15) && e.trusted() && w.takeAgain(e, d) {
		return
	}
	if d.chance(0.1) { // does not look at its context
		time.Sleep(2 * w.options.TTL)
	}
	e.trusted()
	other := oneOf(d, w.staff...) // it may be the next in the queue
	if giveUp := other.giveUp.Load(); giveUp != nil && d.chance(0.3) {
		w.log("makes %s give up", other.who)
		(*giveUp)()
	}
	w.release(e)
}

// takeAgain: "A key that is held can be taken again under the lease's context [...]; the last release frees it". It
// reports whether e was released, as the first of the two.
func (w *worker) takeAgain(e *lease, d draw) (released bool) {
	ctx, before := e.Context(), time.Now()
	if released = d.chance(0.5); released {
		ctx = context.WithoutCancel(ctx)
	}
	again, err := w.locker.Acquire(ctx, e.key)
	switch {
	case !e.trusted(): // lost in the same instant, so that again is nothing or a lease of its own
		if err == nil {
			_ = again.Release()
		}
		return false
	case err != nil:
		w.broke("takes %s again: %v", e.key, err)
		return false
	}
	if now := time.Now(); now.After(before) || again.Fence() != e.Fence() {
		w.broke("took %s again after %v, fence %d, want %d at once", e.key, now.Sub(before), again.Fence(), e.Fence())
	}
	first, last := again, e.Lease
	if released {
		first, last = last, first
		e.over()
	} else {
		time.Sleep(w.holdTime(d))
	}
	trusted := last.Remaining() > 0
	if err := first.Release(); err != nil && trusted {
		w.broke("first release of %s, which was taken twice: %v", e.key, err)
	}
	if trusted && last.Remaining() == 0 {
		w.broke("the first release freed %s, which was taken twice", e.key)
	}
	if released {
		time.Sleep(w.holdTime(d))
		if last.Remaining() == 0 {
			w.checkEnded(last.Context(), last)
		}
		e.ends()
		w.log("releases %s, taken again: %v", e.key, last.Release())
	}
	return released
}

// checkEnded: the context ends with the lease, unless an answer of the same instant renews it.
func (w *worker) checkEnded(ctx context.Context, e *lock.Lease) {
	time.Sleep(time.Nanosecond)
	if e.Remaining() == 0 && ctx.Err() == nil {
		w.broke("%s is over, and its context goes on", e.Key())
	}
}

// release: "It works also after the end of any context, and reports if the lease was lost", in a bounded time.
func (w *worker) release(e *lease) {
	trusted, began := e.Remaining() > 0, time.Now()
	e.ends()
	err := e.Release()
	w.log("releases %s: %v", e.key, err)
	if took, most := time.Since(began), max(w.options.TTL/3, time.Second)+lingering; took > most {
		w.broke("Release of %s took %v, want at most %v", e.key, took, most)
	}
	if trusted && w.plan.profile.calm() && err != nil {
		w.broke("Release of %s: %v", e.key, err)
	}
	if !trusted && !errors.Is(err, lock.ErrLost) {
		w.broke("Release of %s, which was over: %v, want ErrLost", e.key, err)
	}
	if again := e.Release(); !errors.Is(again, err) {
		w.broke("second Release of %s: %v, want %v", e.key, again, err)
	}
	if cause := context.Cause(e.Context()); cause == nil || e.Remaining() > 0 {
		w.broke("%s goes on after Release", e.key)
	} else if trusted && !errors.Is(cause, lock.ErrReleased) && !errors.Is(cause, e.Context().Err()) {
		w.broke("cause %v after Release of %s, want ErrReleased", cause, e.key)
	}
}

// lastTurn begins when the faults are over: every waiter is served, in a bounded time, whatever was lost before.
func (w *worker) lastTurn() {
	d := w.plan.draw("last", w.who)
	key := oneOf(d, w.plan.keys...)
	if w.closed.Load() != nil {
		return
	}
	began := time.Now()
	for {
		asked := time.Now()
		w.log("wants %s for the last time", key)
		got, err := w.locker.Acquire(context.Background(), key)
		w.checkReturn(context.Background(), key, asked, never(), err)
		switch {
		case err == nil:
			e := w.begin(key, asked, got)
			time.Sleep(prompt)
			w.release(e)
		case errors.Is(err, lock.ErrTimeout) || errors.Is(err, lock.ErrQueueFull):
			time.Sleep(d.between(0, w.options.TTL/10))
			continue
		}
		if took := time.Since(began); took > w.patience() {
			w.broke("waited for %s for %v after the faults", key, took)
		}
		return
	}
}
