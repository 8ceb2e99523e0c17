package e2e_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// soldOutAndBack: all instances remember that a SKU is sold out, for far longer than
// the test waits, and units come back on one of them: "on the others when the news
// has got there". Who has bought gets the order again on all of them, all the time.
func soldOutAndBack(t *testing.T, k kind) {
	const hasty = 0
	s := k.open(t, func(i int, settings *app.Settings) {
		settings.SoldOutFor = time.Minute
		settings.SweepEvery = 20 * time.Millisecond
		if i == hasty { // which sells the first order alone: it expires late in the test
			settings.PayWithin = 25 * time.Second
		}
	})
	s.create(0, "mug", 1)
	first := s.buy(hasty, "ann", "first", "1 mug").want(t, http.StatusCreated)
	last, owner := first, "ann"
	ways := []struct {
		name   string
		seller int
		back   func(on int)
	}{
		{"a delivery", 1, func(on int) { s.restock(on, "mug", "note", 1).want(t, http.StatusCreated) }},
		{"a cancellation", 2, func(on int) { s.end(on, owner, last.order(t).ID, "cancel", "").want(t, http.StatusOK) }},
		{"an expiry", 1, func(int) { s.awaitStatus(0, "ann", first.order(t).ID, "expired") }},
	}
	for round, way := range ways {
		for on := range instances {
			s.remembers(t, on, "mug")
			s.buy(on, "ann", "first", "1 mug").wantReplayOf(t, first)
		}
		way.back(round)
		began := time.Now()
		owner = fmt.Sprintf("round-%d", round)
		testserver.Until(t, way.name+" is sold elsewhere", patience, func() bool {
			last = s.buy(way.seller, owner, "key", "1 mug")
			return last.status == http.StatusCreated
		})
		t.Logf("%s on instance %d: sold on instance %d after %v", way.name, round, way.seller, time.Since(began).Round(time.Millisecond))
	}
	for on := range instances {
		s.remembers(t, on, "mug")
		s.buy(on, "ann", "first", "1 mug").wantReplayOf(t, first)
		s.buy(on, owner, "key", "1 mug").wantReplayOf(t, last)
		if a := s.buy(on, owner, "key", "2 mug"); a.problem() != "key-reused" {
			t.Errorf("the key for something else: got %d %s, want key-reused", a.status, a.body)
		}
	}
	s.wantBooks(1)
}

// soldOutAgain: deliveries, some of them at once, come in on all instances while a
// crowd buys out each of them, so that instances learn that nothing is left in the
// moment in which that is no longer true. Each unit is sold long before the memory of
// an instance would end by itself.
func soldOutAgain(t *testing.T, k kind) {
	const buyers, rounds, units = 8, 8, 4
	s := k.open(t, func(_ int, settings *app.Settings) { settings.SoldOutFor = time.Minute })
	s.create(0, "mug", 0)
	var done atomic.Bool
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer done.Store(true)
	for i := range buyers {
		crowd.Go(func() {
			for n := 0; !done.Load(); n++ {
				a := s.buy(i+n, buyer(i), fmt.Sprintf("key-%d", n), "1 mug")
				if a.soldOut() {
					time.Sleep(5 * time.Millisecond) // or refusals leave nothing of the machine for the sales
				}
				if a.status != http.StatusCreated && !a.soldOut() && a.status != http.StatusServiceUnavailable {
					t.Errorf("got %d %s, %v, want an order or sold out", a.status, a.body, a.err)
					return
				}
			}
		})
	}
	for round := range rounds {
		for on, a := range atOnce(1+round%instances, func(i int) answer {
			return s.restock(round+i, "mug", fmt.Sprintf("note-%d-%d", round, i), units)
		}) {
			if a.status != http.StatusCreated {
				t.Fatalf("delivery %d to %d: got %d %s, %v", round, on, a.status, a.body, a.err)
			}
		}
		began := time.Now()
		testserver.Until(t, "the delivery is sold out", patience, func() bool { return s.levelOf(round, "mug").Available == 0 })
		t.Logf("deliveries of round %d were sold after %v", round, time.Since(began).Round(time.Millisecond))
	}
	done.Store(true)
	crowd.Wait()
	s.wantBooks(1)
}

// soldOutFrozen: what is remembered is refused without Redis, also with a rate limit; and
// once Redis is back, units that came back are sold everywhere.
func soldOutFrozen(t *testing.T, k kind) {
	redis := k.ownRedis(t)
	s := k.open(t, func(_ int, settings *app.Settings) {
		settings.Redis, settings.SoldOutFor = redis.Addr(), time.Minute
		settings.RateLimit = new(10_000)
	})
	s.create(0, "mug", 1)
	s.buy(0, "ann", "first", "1 mug").want(t, http.StatusCreated)
	for on := range instances {
		s.remembers(t, on, "mug")
	}
	redis.Pause(t)
	for on := range instances {
		if a := s.buy(on, "bob", "key", "1 mug"); !a.soldOut() {
			t.Errorf("Redis frozen: got %d %s, %v, want sold out", a.status, a.body, a.err)
		}
	}
	s.restock(0, "mug", "note", instances).want(t, http.StatusCreated)
	redis.Unpause(t)
	for on := range instances {
		testserver.Until(t, "the delivery is sold", patience, func() bool {
			return s.buy(on, buyer(on), "key", "1 mug").status == http.StatusCreated
		})
	}
	s.wantBooks(1)
}

// remembers asks an instance for a SKU until it refuses that from memory.
func (s *shop) remembers(t *testing.T, on int, sku string) {
	t.Helper()
	before := s.refusals(t, on)
	testserver.Until(t, "it is remembered that "+sku+" is sold out", patience, func() bool {
		a := s.buy(on, "seeker", fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano()), "1 "+sku)
		if !a.soldOut() && a.status != http.StatusServiceUnavailable {
			t.Fatalf("got %d %s, %v, want sold out", a.status, a.body, a.err)
		}
		return s.refusals(t, on) > before
	})
}

var refusals = regexp.MustCompile(`(?m)^shop_sold_out_remembered_total (\d+)$`)

// refusals is how many orders the instance has refused from memory.
func (s *shop) refusals(t *testing.T, on int) int {
	t.Helper()
	found := refusals.FindStringSubmatch(s.get(on, "", "/metrics").want(t, http.StatusOK).body)
	if found == nil {
		t.Fatal("the metric is missing")
	}
	count, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return count
}
