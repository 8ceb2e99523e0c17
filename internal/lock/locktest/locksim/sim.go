package locksim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest/history"
)

// Run runs the plan of a seed in virtual time, and reports whether all rules held. The log tells what happened.
func Run(t *testing.T, seed uint64) (ok bool, log fmt.Stringer) {
	t.Helper()
	s := &sim{plan: newPlan(seed)}
	defer func() {
		if v := recover(); v != nil { // a deadlock of the bubble: a goroutine waits for what never comes
			s.broken = append(s.broken, fmt.Sprint(v))
		}
		ok, log = len(s.broken) == 0, s
	}()
	synctest.Test(t, func(*testing.T) { s.run() })
	return ok, log
}

// sim is one run of a plan. It lives in a bubble of testing/synctest.
type sim struct {
	plan     *plan
	start    time.Time
	store    *store
	clients  []*client
	history  history.History
	inFlight sync.WaitGroup // messages, and faults to come

	mu     sync.Mutex
	leases []*lease
	events []event
	broken []string
}

// run is the life of a simulation. A goroutine that outlives it is a deadlock of the bubble, whose time stops when run
// returns.
func (s *sim) run() {
	s.start, s.store = time.Now(), newStore(s.plan.rate)
	for _, q := range s.plan.processes {
		s.clients = append(s.clients, newClient(s, q))
	}
	for _, f := range s.plan.faults {
		s.inFlight.Go(func() {
			time.Sleep(f.at)
			s.happen(f)
		})
	}
	var workers, closing sync.WaitGroup
	for _, c := range s.clients {
		for n := range c.workers {
			w := &worker{client: c, who: fmt.Sprintf("%s/w%d", c.name, n+1)}
			workers.Go(w.work)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		workers.Wait()
		for _, c := range s.clients {
			closing.Go(c.close)
		}
		closing.Wait()
		s.inFlight.Wait()
	}()
	limit := s.plan.faulty + s.patience() + 50*s.plan.longest + time.Minute
	select {
	case <-ended:
		s.checkFree()
		s.checkHistory()
	case <-time.After(limit):
		s.broke("all", "workers, Close or messages have not ended after %v", limit)
	}
}

// happen lets a fault begin. During a partition, client.cut drops the messages.
func (s *sim) happen(f fault) {
	c := s.clients[f.process]
	switch f.kind {
	case cutBoth, cutThere, cutBack:
		s.note(c.name, "%s for %v", f.kind, f.length)
		time.Sleep(f.length)
		s.note(c.name, "connected again")
	case crash:
		s.note(c.name, "crash")
		c.crashed.Store(true)
	case closing:
		c.close()
	case flush:
		s.note("store", "loses its memory")
		s.store.flush()
		s.history.Forgot(time.Now())
	case step, stepBack:
		s.note("store", "clock steps by %v", f.step)
		s.store.ahead.Add(int64(f.step))
		if f.step > 0 {
			s.history.Forgot(time.Now()) // leases run out early
		}
	}
}

// healed reports whether the faults are over.
func (s *sim) healed() bool { return time.Since(s.start) > s.plan.faulty }

// patience is how long the last turns may take in all: messages that were under way arrive, leases of the crashed run out,
// and then each holder has its turn. A waiter that has gone costs a reservation.
func (s *sim) patience() time.Duration {
	workers := 0
	for _, q := range s.plan.processes {
		workers += q.workers
	}
	return 10*s.plan.longest + time.Duration(workers)*(reservation+2*s.plan.longest)
}

// reservation is for how long the store keeps a released key for the first waiter.
const reservation = 500 * time.Millisecond

// checkFree: no key is held or waited for any more. Where every message arrived that is so at once, elsewhere when the TTLs
// have passed.
func (s *sim) checkFree() {
	if !s.plan.profile.reliable() {
		back := time.Duration(0) // how much later leases run out
		for _, f := range s.plan.faults {
			back += max(0, -f.step)
		}
		time.Sleep(s.plan.longest*6/5 + reservation + back)
	}
	for _, key := range s.plan.keys {
		// The first probe gives the key back to the first that waits.
		for _, probe := range []string{"is held", "is waited for"} {
			ctx, claim := context.Background(), lock.Claim{Key: key, Owner: probe, TTL: time.Minute}
			g, err := s.store.of(key).Acquire(ctx, claim)
			if err != nil || g.Held {
				s.broke("store", "after all Lockers were closed, %s %s", key, probe)
			}
			if !s.plan.profile.reliable() {
				break
			}
			_ = s.store.of(key).Release(ctx, claim)
		}
	}
}

// checkHistory looks at all leases together.
func (s *sim) checkHistory() {
	for _, broken := range s.history.Check() {
		s.broke(broken.After.Holder, "%v", broken)
	}
	slices.SortStableFunc(s.leases, func(a, b *lease) int { return a.begin.Compare(b.begin) })
	for _, key := range s.plan.keys {
		ofKey := slices.DeleteFunc(slices.Clone(s.leases), func(e *lease) bool { return e.key != key })
		if s.plan.profile.calm() {
			s.checkWakeups(ofKey)
		}
		for _, c := range s.clients {
			s.checkOrder(slices.DeleteFunc(slices.Clone(ofKey), func(e *lease) bool { return e.client != c || e.asked.IsZero() }))
		}
	}
}

// checkOrder: "In one process callers stand in line, first come first served".
func (s *sim) checkOrder(leases []*lease) {
	for i := 1; i < len(leases); i++ {
		if before, e := leases[i-1], leases[i]; e.asked.Before(before.asked) && e.begin.After(before.begin) {
			s.broke(before.who, "got %s before %s, who asked %v earlier", e.key, e.who, before.asked.Sub(e.asked))
		}
	}
}

// checkWakeups: "One who waits is woken by the release": without faults a key is not free for long while a worker waits.
func (s *sim) checkWakeups(leases []*lease) {
	const most = 100 * time.Millisecond // a release, a notification, a request; again for those who give up meanwhile
	free := s.start
	for _, e := range leases {
		since := free
		if e.asked.After(since) {
			since = e.asked
		}
		if waited := e.begin.Sub(since); !e.asked.IsZero() && waited > most {
			s.broke(e.who, "waited until %v for %s, which was free for %v", e.begin.Sub(s.start), e.key, waited)
		}
		if e.freed.After(free) {
			free = e.freed
		}
	}
}

// event is a line of the log. It is formatted when it is read.
type event struct {
	at   time.Duration
	who  string
	what string
	args []any
}

func (s *sim) note(who, what string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event{time.Since(s.start), who, what, args})
}

// broke notes that a rule is broken.
func (s *sim) broke(who, rule string, args ...any) {
	s.note(who, "BROKEN: "+rule, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = append(s.broken, who+": "+fmt.Sprintf(rule, args...))
}

// String is the log of all that happened.
func (s *sim) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", *s.plan)
	for _, e := range s.events {
		fmt.Fprintf(&b, "%15s  %-9s %s\n", e.at, e.who, fmt.Sprintf(e.what, e.args...))
	}
	for _, broken := range s.broken {
		fmt.Fprintf(&b, "BROKEN %s\n", broken)
	}
	return b.String()
}
