package measure

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/loadtest/peers/peer"
)

// longRun is longer than any run. A deadline there is for peers that would set a
// shorter one of their own.
const longRun = 24 * time.Hour

// worker is one goroutine that wants one key, again and again.
type worker struct {
	client peer.Client
	key    string
	guard  *Guard
	hold   time.Duration
	alive  func()

	turns   int
	longest time.Duration
	errors  int
	err     error
}

// work lets every worker take one turn, which opens connections and loads
// scripts, and then, all at once, as many as the amount says.
func (t *team) work(ctx context.Context, alive func()) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	var end time.Time // set before start is closed
	var left atomic.Int64
	left.Store(int64(t.amount.Turns))
	goOn := func(now time.Time) bool { return now.Before(end) }
	if t.amount.Turns > 0 {
		goOn = func(time.Time) bool { return left.Add(-1) >= 0 }
	}
	for i := range t.done {
		w := &worker{
			client: t.clients[i%len(t.clients)],
			key:    fmt.Sprintf("%s:%d", t.prefix, i%t.load.Keys),
			guard:  &t.guards[i%t.load.Keys],
			hold:   t.load.Hold,
			alive:  alive,
		}
		ready.Add(1)
		done.Go(func() {
			// Each has a context of its own, as each request of a server has.
			ctx, cancel := context.WithTimeout(ctx, longRun)
			defer cancel()
			w.turn(ctx, time.Now())
			w.longest = 0
			ready.Done()
			<-start
			for now := time.Now(); ctx.Err() == nil && goOn(now); {
				ok := w.turn(ctx, now)
				now = time.Now()
				if ok && (t.amount.Turns > 0 || !now.After(end)) {
					w.turns++
				}
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			t.done[i] = w
		})
	}
	ready.Wait()
	began := time.Now()
	end = began.Add(t.amount.Time)
	close(start)
	done.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.elapsed = t.amount.Time
	if t.amount.Turns > 0 {
		t.elapsed = time.Since(began)
	}
}

// turn is one acquisition, pass and release. It reports whether all went well.
func (w *worker) turn(ctx context.Context, began time.Time) bool {
	release, err := w.client.Acquire(ctx, w.key)
	w.longest = max(w.longest, time.Since(began))
	if err == nil {
		w.guard.Pass(w.hold)
		err = release()
	}
	if err != nil {
		w.failed(ctx, err)
		return false
	}
	w.alive()
	return true
}

// failed keeps the first error, and keeps a peer that fails at once from spinning.
func (w *worker) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // that is why
	}
	w.errors++
	if w.err == nil {
		w.err = err
	}
	time.Sleep(peer.Retry)
}
