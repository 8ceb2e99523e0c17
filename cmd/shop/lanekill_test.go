package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dustin/go-humanize"

	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

const laneBuyers = 24 // at once, for each kill

// A lane's leader is killed (kill -9) in mid-batch, with dozens of buyers in the line: at its first statement, the one
// that takes the units, the last before the COMMIT, and that; and the server never gets the statement, gets it and
// answers nobody, or answers a process that is gone. All buyers ask another instance, with the same key. Each gets one
// outcome, no acknowledged order is missing, none is there twice, and the audit is clean. Not parallel: it is busy.
func TestServe_killedLeader(t *testing.T) {
	moments := []string{firstOfBatch, "UPDATE skus", "INSERT INTO `movements`", "COMMIT"}
	fates := []storetest.Fate{storetest.Drop, storetest.Mute, storetest.Pass}
	for name, dsn := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			r := newKillRig(t, "redis://"+testserver.Redis(t)+"/3", dsn(t))
			round := 0
			for _, moment := range moments {
				for _, fate := range fates {
					for try := 0; !r.kill(round, killPlan{batch: 1 + (round+try)%2, moment: moment, fate: fate}); try++ {
						if t.Failed() || try == 10 {
							t.Fatalf("no batch was killed at %s", moment)
						}
						round += 2 // all buyers may have been in the first batch; the same instance is the victim again
					}
					round++
				}
			}
			r.wantBooks()
		})
	}
}

// firstOfBatch begins the first statement of a lane's batch.
const firstOfBatch = "INSERT INTO `idempotency_keys`"

// killRig is a shop of two instances. In each round one of them is killed and the other serves its buyers; then that
// one is the next to be killed.
type killRig struct {
	t     *testing.T
	dsn   string // without a proxy
	redis string
	seats [2]*seat

	mu   sync.Mutex
	told map[string]string // order ids by buyer
}

// seat is where an instance connects to the database, through a proxy that may kill it.
type seat struct {
	dsn string

	mu   sync.Mutex
	shop *running
	plan *killPlan // nil: none, or done
}

// killPlan says when an instance is killed.
type killPlan struct {
	batch  int // its how manieth
	moment string
	fate   storetest.Fate
	seen   int // batches so far
}

func newKillRig(t *testing.T, redis, dsn string) *killRig {
	t.Helper()
	stocked(t, dsn, 1_000_000)
	r := &killRig{t: t, dsn: dsn, redis: redis, told: map[string]string{}}
	for i := range r.seats {
		s := &seat{}
		s.dsn = (&storetest.Proxy{Judge: s.judge}).Through(t, dsn)
		r.seats[i] = s
		r.open(s)
	}
	return r
}

// open starts an instance at a seat.
func (r *killRig) open(s *seat) {
	r.t.Helper()
	// Such a lease is over soon after its holder. A healthy one is renewed in time, or its batch is tried again.
	started := startShop(r.t, "--mysql", s.dsn, "--redis", r.redis, "--lab", "--lock-ttl", "500ms")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shop = started
}

// judge kills the instance when its time has come, and lets the statement go its way when the process is gone.
func (s *seat) judge(statement string) storetest.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.plan
	if p == nil {
		return storetest.Pass
	}
	if strings.HasPrefix(statement, firstOfBatch) {
		p.seen++
	}
	if p.seen < p.batch || !strings.HasPrefix(statement, p.moment) {
		return storetest.Pass
	}
	s.plan = nil
	_ = s.shop.cmd.Process.Kill()
	<-s.shop.ended
	return p.fate
}

// kill lets buyers come to the victim, kills it, and lets them ask the other. It reports whether the plan came true.
func (r *killRig) kill(round int, plan killPlan) bool {
	r.t.Helper()
	victim, other := r.seats[round%2], r.seats[(round+1)%2]
	victim.mu.Lock()
	victim.plan = &plan
	victim.mu.Unlock()
	var all sync.WaitGroup
	for i := range laneBuyers {
		all.Go(func() { r.buyer(fmt.Sprintf("buyer-%d-%d", round, i), victim.shop.url, other.shop.url) })
	}
	all.Wait()
	victim.mu.Lock()
	killed := victim.plan == nil
	victim.plan = nil
	victim.mu.Unlock()
	if killed {
		r.open(victim)
	}
	return killed
}

// buyer asks the victim once, and then the other until there is an outcome. A buyer with an answer asks again, and gets
// the same.
func (r *killRig) buyer(name, victim, other string) {
	id := buy(victim, "key", "Shop-Buyer: "+name).header.Get("Location")
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(20 * time.Millisecond) { // as Retry-After says, but sooner
		a := buy(other, "key", "Shop-Buyer: "+name)
		if a.status == http.StatusCreated {
			again := a.header.Get("Location")
			if id != "" && again != id {
				r.t.Errorf("%s was told %s, and then %s", name, id, again)
			}
			r.mu.Lock()
			r.told[name] = again
			r.mu.Unlock()
			return
		}
		var problem struct{ Type string }
		_ = json.Unmarshal([]byte(a.body), &problem)
		// Busy, or the first request still runs, as it seems.
		if a.status != http.StatusServiceUnavailable && problem.Type != "/problems/in-progress" || time.Now().After(deadline) {
			r.t.Errorf("%s got %d %s, %v; want an order", name, a.status, a.body, a.err)
			return
		}
	}
}

// wantBooks compares the buyers' answers with what the shop has.
func (r *killRig) wantBooks() {
	r.t.Helper()
	orders := humanize.Comma(int64(len(r.told)))
	shop(r.t, "audit", "--mysql", r.dsn).want(r.t, exitDone,
		fmt.Sprintf("%s order lines, %s units ordered", orders, orders), "0 oversold: 0 differences")
	ids := map[string]bool{}
	for _, id := range r.told {
		ids[id] = true
	}
	if len(ids) != len(r.told) {
		r.t.Errorf("%d buyers have %d orders", len(r.told), len(ids))
	}
}
