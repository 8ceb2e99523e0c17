// Package locksim runs Lockers against a store and a network that fail, in virtual time.
//
//	go test ./internal/lock/locktest/locksim                      # the first 300 seeds
//	go test ./internal/lock/locktest/locksim -seeds=10000         # more
//	go test ./internal/lock/locktest/locksim -run 'TestSim$' -seed=17 -v   # one, with its log
//	go test ./internal/lock/locktest/locksim -run TestControls -all        # does it find mistakes?
//
// A seed stands for a plan: some processes with Options of their own, workers that take turns under the lock, and a row
// of the table of fault profiles in plan_test.go. Messages are slow, lost, or arrive twice; processes are cut off, or
// close their Lockers; the store loses its memory, or its clock steps. After a while the faults end, and every waiter
// has to be served. All of it runs in a bubble of testing/synctest: a minute takes milliseconds.
//
// The Lockers are those of package lock, and the store is its Memory, with a clock that can be set. The other stores
// are checked by package locktest.
//
// # What is checked
//
// All that package lock promises whatever the store is: each check quotes its promise. Leases on both sides of an instant
// at which the store lost its memory or its clock leapt ahead may overlap: package lock does not promise otherwise. A
// goroutine that is left would be a deadlock of the bubble.
//
// # What a seed repeats
//
// Each decision draws from the seed and a name of its own, so that it does not matter which goroutine draws first.
// Still, which of two events at one instant is first is up to Go's scheduler. About three seeds in ten put events at
// the same instants on purpose: one that fails may need several attempts (-count=100) to fail again.
//
// # What is not found
//
// A pause of a process between two instructions: virtual time passes only while all goroutines wait. What drivers do,
// the scripts of Redis and its notifications: package lock has tests with real servers for these.
package locksim

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/lock"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds to run, from 1")
	only  = flag.Uint64("seed", 0, "run this seed alone, and print its log; 0: many")
)

// Every rule holds on every seed.
func TestSim(t *testing.T) {
	t.Parallel()
	if *only != 0 {
		if log := seed(t, *only); !t.Failed() {
			t.Logf("\n%s", log)
		}
		return
	}
	var next atomic.Int64
	for shard := range runtime.GOMAXPROCS(0) { // each stops at its first failure
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for n := next.Add(1); n <= int64(*seeds) && !t.Failed(); n = next.Add(1) {
				seed(t, uint64(n))
			}
		})
	}
}

// seed runs one seed, and fails t with its log if a rule is broken.
func seed(t *testing.T, n uint64) (log fmt.Stringer) {
	t.Helper()
	ok, log := simulate(t, n)
	if !ok {
		t.Errorf("\n%s\nagain: go test ./internal/lock/locktest/locksim -run 'TestSim$' -seed=%d", log, n)
	}
	return log
}

// simulate runs the plan of a seed in virtual time, and reports whether all rules held. The log tells what happened.
func simulate(t *testing.T, seed uint64) (ok bool, log fmt.Stringer) {
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
	inFlight sync.WaitGroup // messages, and faults to come

	mu     sync.Mutex
	leases []*lease
	events []event
	broken []string

	// forgot is when the store lost its memory of leases, or took them for older than they were. It may then grant a key
	// whose first holder still trusts it, so that leases on both sides of such an instant may overlap.
	forgot []time.Time
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
		for _, w := range c.staff {
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

// happen does what a fault does at its instant. During a partition, client.cut drops the messages.
func (s *sim) happen(f fault) {
	switch f.kind {
	case closing:
		s.clients[f.process].close()
	case flush:
		s.note("store", "loses its memory")
		s.store.flush()
		s.forgets()
	case step:
		s.note("store", "clock steps by %v", f.step)
		s.store.ahead.Add(int64(f.step))
		if f.step > 0 {
			s.forgets() // leases run out early
		}
	}
}

// forgets notes that the store has forgotten leases.
func (s *sim) forgets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot = append(s.forgot, time.Now())
}

// healed reports whether the faults are over.
func (s *sim) healed() bool { return time.Since(s.start) > s.plan.faulty }

// patience is how long the last turns may take in all: messages that were under way arrive, lost leases run out, and
// then each holder has its turn. A waiter that has gone costs a reservation.
func (s *sim) patience() time.Duration {
	workers := 0
	for _, q := range s.plan.processes {
		workers += q.workers
	}
	return 10*s.plan.longest + time.Duration(workers)*(reservation+2*s.plan.longest)
}

// reservation is the time for which the store keeps a released key for the first waiter.
const reservation = 500 * time.Millisecond

// checkFree: no key is held or waited for any more. Without faults that is so at once, else when the TTLs have passed.
func (s *sim) checkFree() {
	if !s.plan.profile.calm() {
		back := time.Duration(0) // how much later leases run out
		for _, f := range s.plan.faults {
			if f.kind == step && f.step < 0 {
				back -= f.step
			}
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
			if !s.plan.profile.calm() {
				break
			}
			_ = s.store.of(key).Release(ctx, claim)
		}
	}
}

// checkHistory looks at all leases together.
func (s *sim) checkHistory() {
	synctest.Wait() // all leases know of their end
	slices.SortStableFunc(s.leases, func(a, b *lease) int { return a.begin.Compare(b.begin) })
	for _, key := range s.plan.keys {
		ofKey := slices.DeleteFunc(slices.Clone(s.leases), func(e *lease) bool { return e.key != key })
		s.checkPairs(ofKey)
		if s.plan.profile.calm() {
			s.checkWakeups(ofKey)
		}
		for _, c := range s.clients {
			s.checkOrder(slices.DeleteFunc(slices.Clone(ofKey), func(e *lease) bool { return e.client != c || e.asked.IsZero() }))
		}
	}
}

// checkPairs checks that one lease on a key is trusted at a time. "Each lease has a fence, higher than that of every earlier
// lease on its key".
func (s *sim) checkPairs(leases []*lease) {
	for i, b := range leases {
		for _, a := range leases[:i] {
			if a.fence < b.fence && !b.begin.Before(a.end) {
				continue // nearly all: neither rule can be broken
			}
			if rule := s.judge(a, b); rule != "" {
				s.broke(b.who, "%s: key %s: %s had fence %d from %v to %v; %s had fence %d from %v to %v", rule, b.key,
					a.who, a.fence, a.begin.Sub(s.start), a.end.Sub(s.start), b.who, b.fence, b.begin.Sub(s.start), b.end.Sub(s.start))
			}
		}
	}
}

// judge returns the rule that is broken by two leases on one key, of which a began first.
func (s *sim) judge(a, b *lease) (rule string) {
	since := a.tenure.sent // of a lease that was handed over: when the store was asked for the first of its tenure
	if b.tenure.sent.Before(since) {
		since = b.tenure.sent
	}
	forgot := slices.ContainsFunc(s.forgot, func(at time.Time) bool { return !at.Before(since) && !at.After(b.begin) })
	trusted := a.begin.Before(a.end) && b.begin.Before(b.end) // each at some time
	if !forgot && trusted && b.begin.Before(a.end) {
		return "two leases are trusted"
	}
	// They were granted in this order if one was there before the other was asked for; or if both were trusted, each in
	// its time. The answers may come the other way round if a process was paused or the store forgot.
	ordered := a.begin.Before(b.tenure.sent) || trusted && !forgot
	if ordered && b.fence <= a.fence {
		return "fences do not rise"
	}
	return ""
}

// checkOrder: "In one process callers are served first come first served".
func (s *sim) checkOrder(leases []*lease) {
	for i := 1; i < len(leases); i++ {
		if before, e := leases[i-1], leases[i]; e.asked.Before(before.asked) && e.begin.After(before.begin) {
			s.broke(before.who, "got %s before %s, who asked %v earlier", e.key, e.who, before.asked.Sub(e.asked))
		}
	}
}

// checkWakeups: "A waiter is woken by the release, not by polling": without faults a key is not free for long while a worker
// waits.
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

// store is what all processes share: a Memory for each key. Its clock has a speed of its own, and steps: "Only durations go to
// the store, never a client's time." A store that loses its memory starts empty.
type store struct {
	start time.Time
	rate  float64
	ahead atomic.Int64 // nanoseconds by which the clock has stepped

	mu   sync.Mutex
	keys map[string]*lock.Memory
}

func newStore(rate float64) *store {
	return &store{start: time.Now(), rate: rate, keys: make(map[string]*lock.Memory)}
}

func (s *store) now() time.Time {
	elapsed := time.Duration(float64(time.Since(s.start)) * s.rate)
	return s.start.Add(elapsed + time.Duration(s.ahead.Load()))
}

func (s *store) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.keys)
}

func (s *store) of(key string) *lock.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.keys[key]
	if m == nil {
		m = lock.NewMemory()
		m.Now = s.now
		s.keys[key] = m
	}
	return m
}
