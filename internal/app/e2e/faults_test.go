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
