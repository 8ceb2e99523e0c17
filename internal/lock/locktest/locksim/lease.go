package locksim

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest/history"
)

// lease is what a worker got, and what is known of it.
type lease struct {
	*lock.Lease
	who     string
	key     string
	world   *world
	link    *link
	holding *holding
	fence   int64
	number  int       // the holding's; after Raise, that of the last grant before it
	index   int       // in the holding: 1 is the one that the store granted
	asked   time.Time // when Acquire was called; zero: unknown, or it did not wait
	begin   time.Time

	mu    sync.Mutex
	end   time.Time // when it was trusted no more
	freed time.Time // when it went back to the store
}

// begin watches a new lease.
func (w *world) begin(l *link, who, key string, asked time.Time, got *lock.Lease) *lease {
	h, index := l.watch.begins(key, got.Fence())
	e := &lease{
		Lease: got, who: who, key: key, world: w, link: l, holding: h, number: h.number, index: index,
		fence: got.Fence(), asked: asked, begin: time.Now(),
	}
	w.note(who, "has %s, fence %d, of %s, for %v", key, w.fence(e.fence), l.alias(h.owner), got.Remaining())
	if left, most := got.Remaining(), max(0, time.Until(l.watch.limit(h))); left > most {
		w.broke(who, "%v remain of the lease on %s, want at most %v", left, key, most)
	}
	if !asked.IsZero() {
		e.checkHandoff()
	}
	w.mu.Lock()
	w.leases = append(w.leases, e)
	w.mu.Unlock()
	context.AfterFunc(got.Context(), e.over)
	return e
}

// ends is called before the lease is released.
func (e *lease) ends() {
	e.over()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.freed.IsZero() {
		e.freed = time.Now()
	}
}

// over is called when the lease's context has ended, and before its release.
func (e *lease) over() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cause := context.Cause(e.Context()); e.freed.IsZero() && (errors.Is(cause, lock.ErrLost) || errors.Is(cause, lock.ErrClosed)) {
		e.freed = time.Now()
	}
	if !e.end.IsZero() {
		return
	}
	e.end = time.Now()
	// "A timer ends its context then, and no request to the store can delay that."
	if limit := e.link.watch.limit(e.holding); e.end.After(limit) {
		e.world.broke(e.who, "the lease on %s was trusted for %v too long", e.key, e.end.Sub(limit))
	}
	if most := e.link.opt.MaxHold; most > 0 && e.end.Sub(e.begin) > most {
		e.world.broke(e.who, "the lease on %s was held for %v, want at most %v", e.key, e.end.Sub(e.begin), most)
	}
	e.world.note(e.who, "trusts %s no more: %v", e.key, context.Cause(e.Context()))
	// "While it is held, a lease is renewed".
	if e.world.plan.weather.calm() && errors.Is(context.Cause(e.Context()), lock.ErrLost) &&
		(e.link.opt.MaxHold == 0 || e.end.Sub(e.begin) < e.link.opt.MaxHold) {
		e.world.broke(e.who, "lost %s, though nothing was wrong", e.key)
	}
	e.world.history.Add(history.Lease{
		Key: e.key, Holder: e.who, Fence: e.fence,
		Since: e.holding.sent, Begin: e.begin, End: e.end,
	})
}

// trusted reports whether its holder would act under it now.
func (e *lease) trusted() bool {
	left := e.Remaining()
	if limit := time.Until(e.link.watch.limit(e.holding)); left > max(0, limit) {
		e.world.broke(e.who, "%v remain of the lease on %s, want at most %v", left, e.key, limit)
	}
	return left > 0 && e.Context().Err() == nil
}

// before reports whether it was granted before another lease on its key. One
// that was raised counts as granted anew: who raises a fence reads again what it
// is about to write.
func (e *lease) before(other *lease) bool {
	if e.number != other.number {
		return e.number < other.number
	}
	return e.index < other.index
}

// excused reports whether the store minted a lower fence between the two.
func (w *world) excused(older, newer *lease) bool {
	from, to := older.holding.sent, time.Now()
	if newer.holding.sent.Before(from) {
		from = newer.holding.sent
	}
	return w.history.WasRewound(from, to)
}

// checkHandoff: "A freed lease is handed to the next without a round trip, a
// bounded number of times and for a bounded time."
func (e *lease) checkHandoff() {
	if e.index == 1 {
		return
	}
	most, during := e.link.opt.MaxHandoffs, e.link.opt.HandoffTime
	if most == 0 {
		most = 100
	}
	if during == 0 {
		during = 50 * time.Millisecond
	}
	if e.index-1 > max(0, most) {
		e.world.broke(e.who, "hand-off %d of %s, want at most %d", e.index-1, e.key, most)
	}
	if held := e.begin.Sub(e.holding.granted); held > during {
		e.world.broke(e.who, "%s was handed over after %v, want at most %v", e.key, held, during)
	}
}
