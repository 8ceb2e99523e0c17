package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/shop/loadtest/peers/peer"
	"example.com/shop/loadtest/stats"
)

// Load is who wants what.
type Load struct {
	Clients    int // each like a process of its own
	Goroutines int // of each client
	Keys       int
	Hold       time.Duration
}

// Amount says when it is over: after a time, or after a number of turns.
type Amount struct {
	Time  time.Duration
	Turns int
}

// Counts is what a peer did under a Load.
type Counts struct {
	Turns       int // that ended in time
	Elapsed     time.Duration
	LongestWait time.Duration
	PerClient   []int // turns; of one client: per goroutine

	Overlaps, Lost int64 // see Guard.Broken
	Errors         int
	FirstError     error
	Hung           error // ErrHung, or nil
}

// PerSecond returns the turns per second.
func (c Counts) PerSecond() float64 {
	if c.Elapsed <= 0 {
		return 0
	}
	return float64(c.Turns) / c.Elapsed.Seconds()
}

// Right reports whether the lock excluded, every time, without an error.
func (c Counts) Right() bool {
	return c.Overlaps == 0 && c.Lost == 0 && c.Errors == 0 && c.Hung == nil
}

// Run lets the peer work under the load. The error tells that it could not be
// done; what the peer did wrong is in the Counts.
func (l Load) Run(ctx context.Context, p peer.Peer, addr, prefix string, a Amount, dog Watchdog) (Counts, error) {
	clients, err := openClients(ctx, p, addr, l.Clients)
	if err != nil {
		return Counts{}, err
	}
	t := newTeam(l, clients, prefix, a)
	hung := dog.Watch(ctx, t.work)
	if err := ctx.Err(); err != nil {
		return Counts{}, errors.Join(err, closeClients(clients, dog.Grace))
	}
	counts := t.counts()
	counts.Hung = hung
	if err := closeClients(clients, dog.Grace); err != nil && hung == nil {
		counts.Errors++
		counts.FirstError = errors.Join(counts.FirstError, err)
	}
	return counts, nil
}

func openClients(ctx context.Context, p peer.Peer, addr string, n int) ([]peer.Client, error) {
	clients := make([]peer.Client, n)
	for i := range clients {
		c, err := p.Open(ctx, addr, fmt.Sprintf("%s-%d", p.Name, i+1))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: open: %w", p.Name, err), closeClients(clients[:i], time.Second))
		}
		clients[i] = c
	}
	return clients, nil
}

// closeClients closes them at the same time, and waits no longer than patience
// for one that hangs in that, too.
func closeClients(clients []peer.Client, patience time.Duration) error {
	errs := make(chan error, len(clients))
	for _, c := range clients {
		go func() { errs <- c.Close() }()
	}
	late := time.After(patience)
	var all error
	for range clients {
		select {
		case err := <-errs:
			all = errors.Join(all, err)
		case <-late:
			return errors.Join(all, errors.New("close: does not return"))
		}
	}
	return all
}

// counts adds up what the workers did. Those that are stuck do not count.
func (t *team) counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Counts{Elapsed: t.elapsed, PerClient: make([]int, len(t.clients))}
	if len(t.clients) == 1 {
		c.PerClient = make([]int, t.load.Goroutines)
	}
	for i, w := range t.done {
		if w == nil {
			continue
		}
		c.Turns += w.turns
		c.LongestWait = max(c.LongestWait, w.longest)
		c.Errors += w.errors
		if c.FirstError == nil {
			c.FirstError = w.err
		}
		c.PerClient[i%len(c.PerClient)] += w.turns
	}
	for i := range t.guards {
		overlaps, lost := t.guards[i].Broken()
		c.Overlaps += overlaps
		c.Lost += lost
	}
	return c
}

// Fairness returns the turns of whoever got the most and the least.
func (c Counts) Fairness() (most, least int) { return stats.Spread(c.PerClient) }

// team is all workers of one run.
type team struct {
	load    Load
	clients []peer.Client
	prefix  string
	amount  Amount
	guards  []Guard // one for each key

	mu      sync.Mutex
	done    []*worker // that have ended; others are nil
	elapsed time.Duration
}

func newTeam(l Load, clients []peer.Client, prefix string, a Amount) *team {
	return &team{
		load: l, clients: clients, prefix: prefix, amount: a,
		guards: make([]Guard, l.Keys),
		done:   make([]*worker, l.Clients*l.Goroutines),
	}
}
