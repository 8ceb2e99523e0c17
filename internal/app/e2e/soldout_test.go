package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// soldOutAndBack: all instances have found a SKU sold out, and units come back on one of them: they are for sale on the
// others at once. A key that has bought gets its order again on all of them, all the time.
func soldOutAndBack(t *testing.T, k kind) {
	const hasty = 0
	s := k.open(t, func(i int, settings *app.Settings) {
		settings.SweepEvery = 20 * time.Millisecond
		if i == hasty { // which sells the first order alone: it expires late in the test
			settings.PayWithin = 20 * time.Second
		}
	})
	s.create(0, "mug", 1)
	first := s.buy(hasty, "ann", "first", "1 mug").want(t, http.StatusCreated)
	last, owner := first, "ann"
	refused := func(round int) {
		for on := range instances {
			if a := s.buy(on, "seeker", fmt.Sprintf("round-%d", round), "1 mug"); !a.soldOut() {
				t.Errorf("instance %d: got %d %s, %v, want sold out", on, a.status, a.body, a.err)
			}
			s.buy(on, "ann", "first", "1 mug").wantReplayOf(t, first)
		}
	}
	for round, back := range []func(on int){
		func(on int) { s.restock(on, "mug", "note", 1).want(t, http.StatusCreated) },
		func(on int) { s.end(on, owner, last.order(t).ID, "cancel", "").want(t, http.StatusOK) },
		func(int) { s.awaitStatus(0, "ann", first.order(t).ID, "expired") },
	} {
		refused(round)
		back(round)
		owner = fmt.Sprintf("round-%d", round)
		last = s.buy((round+1)%instances, owner, "key", "1 mug").want(t, http.StatusCreated)
	}
	refused(instances)
	for on := range instances {
		s.buy(on, owner, "key", "1 mug").wantReplayOf(t, last)
		if a := s.buy(on, owner, "key", "2 mug"); a.problem() != "key-reused" {
			t.Errorf("the key for something else: got %d %s, want key-reused", a.status, a.body)
		}
	}
	s.wantBooks(1)
}

// soldOutAgain: deliveries, some of them at once, come in on all instances while a crowd buys out each of them, so that
// instances find that nothing is left in the moment in which that is no longer true.
func soldOutAgain(t *testing.T, k kind) {
	const buyers, rounds, units = 8, 8, 4
	s := k.open(t, nil)
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
