package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dustin/go-humanize"

	"example.com/shop/internal/store/storetest"
)

// killRig is a shop of two instances. In each round one of them is killed and the
// other serves its buyers; then that one is the next to be killed.
type killRig struct {
	t      *testing.T
	name   string
	direct []string // flags: the database, without a proxy
	args   []string
	seats  [2]*seat
	dice   *rand.Rand
	killed map[string]int // by moment and fate

	mu   sync.Mutex
	told map[string]string // order ids by buyer
}

// seat is where an instance connects to the database; to a server, through a proxy
// that may kill it.
type seat struct {
	database []string // flags

	mu   sync.Mutex
	shop *running
	plan *killPlan // nil: none
	done chan struct{}
}

// killPlan says when an instance is killed.
type killPlan struct {
	batch  int // its how manieth
	moment string
	fate   storetest.Fate
	seen   int // batches so far
}

// newKillRig returns one on a database, with units of demo-mug for all.
func newKillRig(t *testing.T, name, redis string, database ...string) *killRig {
	t.Helper()
	r := &killRig{t: t, name: name, direct: database, killed: map[string]int{}, told: map[string]string{}}
	// Such a lease is over soon after its holder. A healthy one is renewed in time, or its batch is tried again.
	r.args = []string{"--redis", redis, "--lab", "--lock-ttl", "500ms"}
	shop(t, append([]string{"migrate"}, database...)...).want(t, exitDone)
	shop(t, append([]string{"seed", "--sku", "demo-mug", "--units", "1000000"}, database...)...).want(t, exitDone)
	for i := range r.seats {
		r.seats[i] = &seat{database: database}
	}
	return r
}

// throughProxies is newKillRig on a server, with a proxy at each seat.
func throughProxies(t *testing.T, name, redis, dsn string, dice *rand.Rand) *killRig {
	t.Helper()
	r := newKillRig(t, name, redis, "--mysql", dsn)
	r.dice = dice
	for _, s := range r.seats {
		s.database = []string{"--mysql", (&storetest.Proxy{Judge: s.judge}).Through(t, dsn)}
	}
	return r
}

// judge kills the instance when its time has come, and lets the statement go its
// way when the process is gone.
func (s *seat) judge(statement string) storetest.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.plan
	if p == nil {
		return storetest.Pass
	}
	if strings.HasPrefix(statement, moments()[0]) {
		p.seen++
	}
	if p.seen < p.batch || !strings.HasPrefix(statement, p.moment) {
		return storetest.Pass
	}
	s.plan = nil
	_ = s.shop.cmd.Process.Kill()
	<-s.shop.ended
	close(s.done)
	return p.fate
}

// open starts an instance at a seat.
func (r *killRig) open(s *seat) bool {
	started, err := openShop(r.t, slices.Concat(s.database, r.args)...)
	if err != nil {
		r.t.Errorf("%s: %v", r.name, err)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shop = started
	return true
}

// run kills until there are no kills left to be taken on.
func (r *killRig) run(left *atomic.Int64) {
	if !r.open(r.seats[0]) || !r.open(r.seats[1]) {
		return
	}
	for round := 0; left.Add(-1) >= 0; round++ {
		victim, other := r.seats[round%2], r.seats[(round+1)%2]
		killed := false
		for try := 0; !killed && !r.t.Failed(); try++ { // all buyers may have been in the first batch
			killed = r.kill(fmt.Sprintf("%d-%d", round, try), victim, other)
		}
		if r.t.Failed() || !r.open(victim) {
			return
		}
	}
}

// kill lets buyers come to the victim, kills it, and lets them ask the other.
func (r *killRig) kill(round string, victim, other *seat) bool {
	plan := &killPlan{batch: 1 + r.dice.IntN(2), moment: moments()[r.dice.IntN(len(moments()))]}
	plan.fate = []storetest.Fate{storetest.Drop, storetest.Mute, storetest.Pass}[r.dice.IntN(3)]
	victim.mu.Lock()
	victim.plan, victim.done = plan, make(chan struct{})
	victim.mu.Unlock()
	var all sync.WaitGroup
	for i := range laneBuyers {
		all.Go(func() { r.buyer(fmt.Sprintf("buyer-%s-%d", round, i), victim, other) })
	}
	all.Wait()
	victim.mu.Lock()
	victim.plan = nil
	victim.mu.Unlock()
	select {
	case <-victim.done:
		r.killed[strings.ReplaceAll(plan.moment, "`", "")+" "+fates()[plan.fate]]++
		return true
	default:
		return false
	}
}

// buyer asks the victim once, and then the other until there is an outcome. One who
// was told something asks again, and must be told the same.
func (r *killRig) buyer(name string, victim, other *seat, lines ...string) {
	lines = append(lines, "Shop-Buyer: "+name)
	first := buy(victim.shop.url, "key", lines...)
	id := first.header.Get("Location")
	deadline := time.Now().Add(2 * patience)
	for {
		a := buy(other.shop.url, "key", lines...)
		var problem struct{ Type string }
		_ = json.Unmarshal([]byte(a.body), &problem)
		if a.status == http.StatusCreated {
			if again := a.header.Get("Location"); id != "" && again != id {
				r.t.Errorf("%s: %s was told %s, and then %s", r.name, name, id, again)
			}
			r.mu.Lock()
			r.told[name] = a.header.Get("Location")
			r.mu.Unlock()
			return
		}
		// Busy, or the first request still runs, as it seems.
		if a.status != http.StatusServiceUnavailable && problem.Type != "/problems/in-progress" || time.Now().After(deadline) {
			r.t.Errorf("%s: %s got %d %s, %v; want an order", r.name, name, a.status, a.body, a.err)
			return
		}
		time.Sleep(20 * time.Millisecond) // as Retry-After says, but sooner
	}
}

// wantBooks compares what buyers were told with what the shop has.
func (r *killRig) wantBooks() {
	r.t.Helper()
	orders := humanize.Comma(int64(len(r.told)))
	shop(r.t, append([]string{"audit"}, r.direct...)...).want(r.t, exitDone,
		fmt.Sprintf("%s order lines, %s units ordered", orders, orders), "0 oversold: 0 differences")
	ids := map[string]bool{}
	for _, id := range r.told {
		ids[id] = true
	}
	if len(ids) != len(r.told) {
		r.t.Errorf("%s: %d buyers have %d orders", r.name, len(r.told), len(ids))
	}
}
