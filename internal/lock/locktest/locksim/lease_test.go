package locksim

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/lock"
)

// lease is what a worker got, and what is known of it.
type lease struct {
	*lock.Lease
	*worker
	key    string
	tenure *tenure
	index  int       // in the tenure: 1 is the one that the store granted
	asked  time.Time // when Acquire was called; zero: unknown, or it did not wait
	begin  time.Time // when Acquire returned
	fence  int64

	mu    sync.Mutex
	end   time.Time // when it was trusted no more: its release or the end of its context, whichever came first
	freed time.Time // when it went back to the store
}

// begin watches a new lease.
func (w *worker) begin(key string, asked time.Time, got *lock.Lease) *lease {
	t, index := w.watch.begins(key, got.Fence())
	e := &lease{
		Lease: got, worker: w, key: key, tenure: t, index: index, asked: asked, begin: time.Now(), fence: got.Fence(),
	}
	w.log("has %s, fence %d, of %s, for %v", key, got.Fence(), t.owner, got.Remaining())
	e.checkRemaining(got.Remaining())
	if !asked.IsZero() {
		e.checkHandoff()
	}
	w.sim.mu.Lock()
	w.leases = append(w.leases, e)
	w.sim.mu.Unlock()
	context.AfterFunc(got.Context(), e.over)
	return e
}

// checkHandoff: "A freed lease is handed to the next without a round trip, a bounded number of times and for a bounded
// time."
func (e *lease) checkHandoff() {
	if e.index == 1 {
		return
	}
	if held, most := e.begin.Sub(e.tenure.granted), e.options.HandoffTime; held > most {
		e.broke("%s was handed over after %v, want at most %v", e.key, held, most)
	}
}

// checkRemaining: "A lease is trusted from before its request was sent until TTL minus Margin, on the monotonic clock."
func (e *lease) checkRemaining(left time.Duration) {
	if most := max(0, time.Until(e.watch.limit(e.tenure))); left > most {
		e.broke("%v remain of the lease on %s, want at most %v", left, e.key, most)
	}
}

// trusted reports whether its holder would act under it now.
func (e *lease) trusted() bool {
	left := e.Remaining()
	e.checkRemaining(left)
	return left > 0 && e.Context().Err() == nil
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
	cause := context.Cause(e.Context())
	if e.freed.IsZero() && (errors.Is(cause, lock.ErrLost) || errors.Is(cause, lock.ErrClosed)) {
		e.freed = time.Now()
	}
	if !e.end.IsZero() {
		return
	}
	e.end = time.Now()
	// "Then a timer ends its context, and no request to the store can delay that."
	if limit := e.watch.limit(e.tenure); e.end.After(limit) {
		e.broke("the lease on %s was trusted for %v too long", e.key, e.end.Sub(limit))
	}
	e.log("trusts %s no more: %v", e.key, cause)
	// "The lease is renewed until all contexts under which it is held have ended."
	if e.plan.profile.calm() && errors.Is(cause, lock.ErrLost) {
		e.broke("lost %s, though nothing was wrong", e.key)
	}
}
