package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/testserver" //nolint:depguard // as in the program
)

// load is a case: who wants what.
type load struct {
	name, about string
	clients     int // each like a process of its own
	goroutines  int // of each client
	keys        int
	hold        time.Duration
	deadline    time.Duration // of each acquisition; 0: none that matters
	together    int           // keys that a turn takes at once; 0: one
	link        time.Duration // by which each answer of Redis is late
}

func allLoads() []load {
	return []load{
		{name: "one", about: "1 goroutine, no other wants the key", clients: 1, goroutines: 1, keys: 1},
		{name: "deadline", about: "the same, with a deadline of 2 s for each acquisition", clients: 1, goroutines: 1, keys: 1, deadline: 2 * time.Second},
		{name: "keys", about: "64 goroutines of one client, each on its own key", clients: 1, goroutines: 64, keys: 64},
		{name: "hot", about: "64 goroutines of one client on one key", clients: 1, goroutines: 64, keys: 1},
		{name: "spread", about: "4 clients x 16 goroutines on one key", clients: 4, goroutines: 16, keys: 1},
		{name: "hold", about: "4 clients x 16 goroutines on one key, held for 1 ms", clients: 4, goroutines: 16, keys: 1, hold: time.Millisecond},
		{
			name: "cart", about: "1 goroutine that takes ten free keys, from a Redis whose answers are 0.5 ms late",
			clients: 1, goroutines: 1, keys: 1, together: 10, link: 500 * time.Microsecond,
		},
	}
}

// round is what a peer did under a load.
type round struct {
	perSecond float64       // turns; 0 if it hung, so that it is compared by what it does when it works
	longest   time.Duration // wait for the key
	turns     float64       // all, also those before and after the time that counts
	commands  float64       // that Redis processed meanwhile
	gap       time.Duration // mean time that a held key stood free between two holders; 0 where holding takes no time
	overlaps  int64         // times that a second one was inside
	err       error         // the first one of a turn, or a hang
}

func (r round) right() bool { return r.overlaps == 0 && r.err == nil }

// guard is what a lock protects, and finds out whether it does.
type guard struct {
	inside, overlaps atomic.Int64
	passes           atomic.Int64
	left, free       atomic.Int64 // when the latest holder left, and how long the key stood free, in nanoseconds
}

// pass is the work under the lock.
func (g *guard) pass(hold time.Duration) {
	if g.inside.Add(1) != 1 {
		g.overlaps.Add(1)
	}
	if hold > 0 {
		if left := g.left.Load(); left > 0 {
			g.free.Add(time.Now().UnixNano() - left)
		}
		time.Sleep(hold)
		g.left.Store(time.Now().UnixNano())
	}
	g.inside.Add(-1)
	g.passes.Add(1)
}

// patience is how long a turn may take until its peer is taken to hang: a lease that was merely lost has run out by then.
const patience = ttl * 3 / 2

var errHung = errors.New("hung")

// run lets the peer take turns for as long as length says. A turn is an acquisition, a pass through what the lock
// guards, and the release. A turn that began in time is waited for, so that starvation shows in the longest wait, but
// it is counted only if it ended in time. The error tells that the peer could not be measured; what it did wrong is in
// the round.
func (l load) run(ctx context.Context, p peer, server, prefix string, length time.Duration) (round, error) {
	addr := server
	if l.link > 0 {
		link, err := testserver.NewLink(ctx, false, func() string { return server })
		if err != nil {
			return round{}, err
		}
		defer link.Close()
		link.Delay(l.link)
		addr = link.Addr
	}
	clients := make([]client, l.clients)
	for i := range clients {
		c, err := p.open(addr)
		if err != nil {
			return round{}, fmt.Errorf("%s: open: %w", p.name, err)
		}
		clients[i] = c
	}
	ctx, cancel := context.WithTimeout(ctx, length+patience)
	defer cancel()
	guards, workers := make([]guard, l.keys), make([]*worker, l.clients*l.goroutines)
	var ready, ended sync.WaitGroup
	ready.Add(len(workers))
	for i := range workers {
		keys := []string{fmt.Sprintf("%s:%d", prefix, i%l.keys)}
		for n := 1; n < l.together; n++ {
			keys = append(keys, fmt.Sprintf("%s:%d:%d", prefix, i%l.keys, n))
		}
		w := &worker{load: l, client: clients[i%l.clients], keys: keys, guard: &guards[i%l.keys]}
		workers[i] = w
		ended.Go(func() {
			w.turn(ctx) // opens connections and loads scripts
			w.longest = 0
			ready.Done()
			ready.Wait()
			end := time.Now().Add(length)
			for ctx.Err() == nil && time.Now().Before(end) {
				if w.turn(ctx) && !time.Now().After(end) {
					w.turns++
				}
			}
		})
	}
	ended.Wait()
	r := sum(workers, guards, length)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.perSecond, r.err = 0, fmt.Errorf("%w: nothing happened for %v", errHung, patience)
	}
	for _, c := range clients {
		err := c.close()
		r.err = cmp.Or(r.err, err)
	}
	return r, nil
}

// sum adds up what the workers did.
func sum(workers []*worker, guards []guard, length time.Duration) (r round) {
	for _, w := range workers {
		r.perSecond += float64(w.turns) / length.Seconds()
		r.longest = max(r.longest, w.longest)
		r.err = cmp.Or(r.err, w.err)
	}
	for i := range guards {
		g := &guards[i]
		r.overlaps += g.overlaps.Load()
		r.turns += float64(g.passes.Load())
		r.gap = time.Duration(g.free.Load() / max(1, g.passes.Load())) // of the only key where keys are held
	}
	return r
}

// worker is one goroutine that wants its keys, again and again.
type worker struct {
	load
	client client
	keys   []string // one, but for a load that takes several together
	guard  *guard

	turns   int
	longest time.Duration
	err     error // the first
}

// turn reports whether all went well.
func (w *worker) turn(ctx context.Context) bool {
	if w.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.deadline)
		defer cancel()
	}
	began := time.Now()
	release, err := w.client.acquireAll(ctx, w.keys)
	w.longest = max(w.longest, time.Since(began))
	if err == nil {
		w.guard.pass(w.hold)
		err = release()
	}
	if err != nil && ctx.Err() == nil {
		w.err = cmp.Or(w.err, err)
		time.Sleep(retry) // a peer that fails at once does not spin
	}
	return err == nil
}
