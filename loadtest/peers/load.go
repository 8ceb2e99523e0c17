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

// load is a case: the clients and the keys that they want.
type load struct {
	name, about string
	clients     int // each stands for a process
	goroutines  int // of each client
	keys        int
	hold        time.Duration
	deadline    time.Duration // of each acquisition; 0 for none
	together    int           // keys that a turn takes at once; 0 means 1
	link        time.Duration // delay of each answer of Redis
}

func allLoads() []load {
	return []load{
		{name: "one", about: "1 goroutine, without competition for the key", clients: 1, goroutines: 1, keys: 1},
		{name: "deadline", about: "the same, with a deadline of 2 s for each acquisition", clients: 1, goroutines: 1,
			keys: 1, deadline: 2 * time.Second},
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

// round is the result of a peer under a load.
type round struct {
	perSecond float64       // turns; 0 if the peer hung: such rounds do not count
	longest   time.Duration // wait for the key
	turns     float64       // all turns, including those before and after the measured time
	commands  float64       // commands that Redis processed meanwhile
	gap       time.Duration // mean time for which the key was free between two holders; 0 if holding takes no time
	overlaps  int64         // times that the key had a second holder
	err       error         // the first error of a turn, or a hang
}

// guard is the section that a lock protects. It detects overlaps.
type guard struct {
	inside, overlaps atomic.Int64
	passes           atomic.Int64
	left, free       atomic.Int64 // time at which the last holder left, and time for which the key was free, in nanoseconds
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

// patience is the time after which a peer counts as hung. A lease that was only lost has run out by then.
const patience = ttl * 3 / 2

var errHung = errors.New("hung")

// run lets the peer take turns for the given length. A turn is an acquisition, a pass through the
// guard, and the release. run waits for turns that began in time, so that starvation shows in the
// longest wait, but it counts a turn only if it also ended in time. The error means that the peer could
// not be measured; the peer's own errors are in the round.
func (l load) run(ctx context.Context, p peer, server, prefix string, length time.Duration) (round, error) {
	addr := server
	if l.link > 0 {
		link, err := testserver.NewLink(ctx, false, server)
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

// sum adds up the results of the workers.
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
		r.gap = time.Duration(g.free.Load() / max(1, g.passes.Load())) // loads that hold keys have only one
	}
	return r
}

// worker is one goroutine that takes its keys again and again.
type worker struct {
	load
	client client
	keys   []string // one key, or several if the load takes them together
	guard  *guard

	turns   int
	longest time.Duration
	err     error // the first error
}

// turn takes one turn, and reports whether it succeeded.
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
		time.Sleep(retry) // so that a peer that fails at once does not spin
	}
	return err == nil
}
