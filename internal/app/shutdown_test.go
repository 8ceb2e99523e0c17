package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// inFlight places an order that thinks, and returns once it holds the lease, or has its answer: on a busy machine
// nobody may look in between.
func inFlight(t *testing.T, s app.Settings, shop *app.Shop, think string) <-chan answer {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Redis})
	defer client.Close()
	done := make(chan answer, 1)
	go func() {
		done <- buy(t, shop, "in-flight", "Shop-Think: "+think)
	}()
	testserver.Until(t, "the order holds the lease", 10*time.Second, func() bool {
		// A lease that is held has one of these marks: see redis_acquire.lua.
		return len(done) > 0 || strings.ContainsAny(client.Get(t.Context(), "lock:{sku:mug}").Val(), "+*")
	})
	return done
}

// An order that takes too long is cut off, Shutdown says so, and the accounts agree all the same.
func TestShutdown_cutsOff(t *testing.T) {
	t.Parallel()
	for range 3 { // a busy machine may let an order end before Shutdown begins
		s := embedded(t, 5)
		s.Drain = 50 * time.Millisecond
		shop := start(t, s)
		order := inFlight(t, s, shop, "1s")
		err := shop.Shutdown(t.Context())
		if again := shop.Shutdown(t.Context()); fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("got %v from a second Shutdown, want %v", again, err)
		}
		w := <-order
		if w.status == http.StatusCreated {
			t.Logf("the order ended in time; Shutdown: %v", err)
			continue
		}
		if err == nil {
			t.Error("got nil, want an error about the order that was cut off")
		}
		if w.status != 0 {
			t.Errorf("got %d %s for the order, want none", w.status, w.body)
		}
		wantAudit(t, start(t, s), 0)
		return
	}
	t.Error("got orders that ended in time, want one that is cut off")
}
