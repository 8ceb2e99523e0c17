package locksim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"example.com/shop/internal/lock"
)

// worker is a goroutine of a process that takes turns under the lock.
type worker struct {
	world  *world
	link   *link
	locker *lock.Locker
	name   string
}

func (k *worker) note(what string, args ...any) { k.world.note(k.name, what, args...) }

func (k *worker) broke(rule string, args ...any) { k.world.broke(k.name, rule, args...) }

// work takes turns until the faults are over, and then a last one.
func (k *worker) work() {
	for n := 0; !k.world.healed() && !k.link.crashed(); n++ {
		d := throw(k.world.plan, "turn", k.name, strconv.Itoa(n))
		time.Sleep(d.between(0, oneOf(d, prompt, 50*time.Millisecond, k.link.opt.TTL)))
		k.turn(d)
		if n == 100 {
			time.Sleep(k.world.plan.storm - time.Since(k.world.start)) // a short TTL would go on for long
		}
	}
	k.lastTurn()
}

// turn is one turn of a random kind.
func (k *worker) turn(d dice) {
	key := oneOf(d, k.world.plan.keys...)
	ctx, gone, cancel := k.context(d)
	defer cancel()
	switch kind := d.IntN(10); {
	case kind == 0:
		k.tryOnce(ctx, d, key, gone)
	case kind == 1 && !k.world.plan.weather.calm(): // one lease waits for the next: not to be measured
		k.takeAll(ctx, d)
	default:
		asked := time.Now()
		k.note("wants %s until %v", key, gone.Sub(k.world.start))
		k.link.waits(k.name, cancel)
		got, err := k.locker.Acquire(ctx, key)
		k.link.waits(k.name, nil)
		k.checkReturn(ctx, key, asked, gone, err)
		if err == nil {
			k.hold(k.world.begin(k.link, k.name, key, asked, got), d)
		}
	}
}

// context returns one that ends by itself in some turns, and when it does. Its
// end may come while its caller waits, holds the key, or never.
func (k *worker) context(d dice) (ctx context.Context, gone time.Time, cancel context.CancelFunc) {
	ctx, end := context.WithCancel(context.Background())
	if !d.chance(0.4) {
		return ctx, never(), end
	}
	after := d.between(0, oneOf(d, 4*prompt, k.link.opt.TTL, 3*k.link.opt.TTL))
	timer := time.AfterFunc(after, end)
	return ctx, time.Now().Add(after), func() { timer.Stop(); end() }
}

// never is later than any plan takes.
func never() time.Time { return time.Now().Add(1000 * time.Hour) }

func (k *worker) tryOnce(ctx context.Context, d dice, key string, gone time.Time) {
	asked := time.Now()
	k.note("tries %s", key)
	got, err := k.locker.TryAcquire(ctx, key)
	k.checkReturn(ctx, key, asked, gone, err)
	if err == nil {
		k.hold(k.world.begin(k.link, k.name, key, time.Time{}, got), d)
	}
}

// takeAll takes all keys of the plan.
func (k *worker) takeAll(ctx context.Context, d dice) {
	keys := slices.Concat(k.world.plan.keys, k.world.plan.keys[:1])
	d.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	k.note("wants all of %v", keys)
	all, err := k.locker.AcquireAll(ctx, keys...)
	if err != nil {
		if !errors.Is(err, lock.ErrNotAcquired) {
			k.broke("AcquireAll: %v, want ErrNotAcquired", err)
		}
		return
	}
	var leases []*lease
	for _, key := range k.world.plan.keys {
		got := all.Lease(key)
		if got == nil {
			k.broke("AcquireAll has no lease on %s", key)
			return
		}
		if got.Remaining() > 0 { // else it was lost while the next was waited for
			leases = append(leases, k.world.begin(k.link, k.name, key, time.Time{}, got))
		}
	}
	for _, e := range leases {
		time.Sleep(k.holdTime(d))
		k.write(e, d)
	}
	for _, e := range leases {
		e.ends()
	}
	k.note("releases all: %v", all.Release())
}

// checkReturn: "If ctx ended, errors.Is holds for ctx.Err() as well". "Acquire
// returns when ctx does, with one exception: while the store is being asked and
// ctx, far from its deadline, is cancelled. Then it returns with the store's
// answer, or after a third of the TTL (a second, if that is longer)".
func (k *worker) checkReturn(ctx context.Context, key string, asked, gone time.Time, err error) {
	now, o, w := time.Now(), k.link.opt, k.world
	until, end := gone, never()
	if most := o.MaxWait; most >= 0 {
		if most == 0 {
			most = 30 * time.Second
		}
		end = asked.Add(most)
	}
	if end.Before(until) {
		until = end
	}
	if at := w.closedAt(k.link); !at.IsZero() && at.After(asked) && at.Before(until) {
		until = at
	}
	patience := max(o.TTL/3, time.Second)
	if late := now.Sub(until); late > 0 && !k.link.watch.justEnded(key, until, end.Add(-patience)) || late > patience+lingering {
		k.broke("Acquire of %s returned %v late", key, late)
	}
	if err == nil {
		return
	}
	k.note("has not got %s: %v", key, err)
	if !errors.Is(err, lock.ErrNotAcquired) {
		k.broke("Acquire of %s: %v, want ErrNotAcquired", key, err)
	}
	if now.Equal(gone) && w.plan.grain == time.Nanosecond && !errors.Is(err, context.Canceled) {
		k.broke("Acquire of %s: %v, want context.Canceled", key, err)
	}
	well := w.plan.weather.calm() || asked.After(w.start.Add(w.plan.storm)) && !k.link.crashed()
	if alone := errors.Unwrap(err); well && ctx.Err() == nil && !isPatience(err) && alone != lock.ErrNotAcquired { //nolint:errorlint // alone: held by another
		k.broke("Acquire of %s: %v, though nothing was wrong", key, err)
	}
}

// isPatience: the caller's own Options, or Close, ended its wait.
func isPatience(err error) bool {
	return errors.Is(err, lock.ErrTimeout) || errors.Is(err, lock.ErrQueueFull) || errors.Is(err, lock.ErrClosed)
}
