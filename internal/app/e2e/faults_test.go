package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// instanceShutsDown: the instance that expires orders is shut down while buyers place orders, and cuts off those in
// flight. Their buyers ask elsewhere, with the same key: no order is lost and none is there twice. Another instance
// takes over the expiry.
func instanceShutsDown(t *testing.T, k kind) {
	const buyers, each = 12, 8
	const expires = `msg="job runs here" job=expiry`
	s := k.open(t, func(_ int, settings *app.Settings) {
		settings.PayWithin, settings.SweepEvery = 2*time.Second, 20*time.Millisecond
		settings.Drain = time.Millisecond
	})
	s.create(0, "mug", buyers*each)
	victim := -1
	testserver.Until(t, "an instance expires orders", patience, func() bool {
		for i, log := range s.logs {
			if log.Has(expires) {
				victim = i
			}
		}
		return victim >= 0
	})

	var acknowledged atomic.Int64
	enough := make(chan struct{}) // for the shutdown to be in mid-run
	var shut sync.WaitGroup
	shut.Go(func() {
		<-enough
		t.Logf("shutdown of instance %d: %v", victim, s.instances[victim].Shutdown(context.Background()))
	})
	outcomes := atOnce(buyers, func(i int) (failed []string) {
		for n := range each {
			key := fmt.Sprintf("key-%d", n)
			a := s.insist(victim, func(on int) answer { return s.buy(on, buyer(i), key, "1 mug") })
			if a.status != http.StatusCreated {
				failed = append(failed, fmt.Sprintf("%d %s, %v", a.status, a.body, a.err))
			}
			if acknowledged.Add(1) == buyers*each/4 {
				close(enough)
			}
		}
		return failed
	})
	shut.Wait()
	for i, failed := range outcomes {
		if len(failed) > 0 {
			t.Errorf("%s: %s", buyer(i), failed)
		}
	}
	if got := len(s.book.orders); got != buyers*each {
		t.Errorf("got %d orders, want %d", got, buyers*each)
	}
	rest := victim + 1
	testserver.Until(t, "all orders have expired", patience, func() bool { return s.levelOf(rest, "mug").Available == buyers*each })
	if !s.logs[(victim+1)%instances].Has(expires) && !s.logs[(victim+2)%instances].Has(expires) {
		t.Error("no other instance has taken over the expiry")
	}
	s.wantBooks(rest)
}

func redisLost(t *testing.T, k kind) {
	outage(t, k, testserver.Kill, testserver.Restart)
}

func redisFrozen(t *testing.T, k kind) {
	outage(t, k, testserver.Pause, testserver.Unpause)
}

// outage: Redis fails while buyers take all there is, and comes back. Meanwhile they are told to ask again; in the end
// every unit is sold, and none twice.
func outage(t *testing.T, k kind, fail, heal testserver.Fault) {
	const units, buyers = 300, 24
	redis := k.ownRedis(t)
	s := k.open(t, func(_ int, settings *app.Settings) { settings.Redis = redis.Addr() })
	s.create(0, "mug", units)
	s.create(0, "probe", 1000)

	var acknowledged atomic.Int64
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	var run sync.WaitGroup
	var refused []answer
	defer run.Wait() // also of a test that has failed
	run.Go(func() {
		refused = atOnce(buyers, func(i int) answer {
			for n := 0; ; n++ {
				a := s.insist(i, func(on int) answer { return s.buy(on, buyer(i), fmt.Sprintf("key-%d", n), "1 mug") })
				if a.status != http.StatusCreated {
					return a
				}
				acknowledged.Add(1)
				begin()
			}
		})
		begin() // also if nobody could buy
	})
	<-begun
	testserver.Must(t, redis.Do(t.Context(), fail))
	sold := acknowledged.Load()
	s.onAll(t, "buyers are told to ask again", func(a answer) bool { // where a lease is still good, they may buy
		if a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
			t.Errorf("got %v %s, want Retry-After", a.header, a.body)
		}
		return a.status == http.StatusServiceUnavailable
	})
	testserver.Must(t, redis.Do(t.Context(), heal))
	healed := time.Now()
	s.onAll(t, "buyers can buy", func(a answer) bool { return a.status == http.StatusCreated })
	t.Logf("%d units sold before the outage; all instances sell again %v after it", sold, time.Since(healed).Round(time.Millisecond))
	run.Wait()
	for _, a := range refused {
		if !a.soldOut() {
			t.Errorf("got %d %s, %v, want sold out", a.status, a.body, a.err)
		}
	}
	if got := s.levelOf(0, "mug"); got != (level{Supplied: units, Reserved: units}) {
		t.Errorf("got %+v, want all %d reserved", got, units)
	}
	s.wantBooks(1)
}

// onAll buys from each instance, until the answer is as wanted.
func (s *shop) onAll(t *testing.T, what string, wanted func(answer) bool) {
	t.Helper()
	for i := range instances {
		n := 0
		testserver.Until(t, fmt.Sprintf("instance %d: %s", i, what), patience, func() bool {
			n++ // a new key each time: a replay needs no lock
			a := s.buy(i, fmt.Sprintf("prober-%d", i), fmt.Sprint(what, n), "1 probe")
			if a.status != http.StatusCreated && a.status != http.StatusServiceUnavailable {
				t.Errorf("got %d %s, %v, want an order or 503", a.status, a.body, a.err)
			}
			return wanted(a)
		})
	}
}
