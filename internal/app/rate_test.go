package app_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/logs/logbook"
)

// cancelNothing asks for a change that is refused with 404, unless a limit refuses
// it first.
func cancelNothing(t *testing.T, shop *app.Shop, buyer string) answer {
	t.Helper()
	w, err := call(t, http.MethodPost, shop.URL()+"/v1/orders/01980000-0000-7000-8000-000000000000/cancel", "", "Shop-Buyer: "+buyer)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// "How many requests per second one buyer may send, over all instances, and five
// times as many in a burst."
func TestRateLimit_instancesShareIt(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(*testing.T) string{
		"embedded": func(*testing.T) string { return "" },
		"Redis 8":  func(t *testing.T) string { return testserver.Redis(t) },
		"Redis 7":  func(t *testing.T) string { return testserver.Redis7(t) },
		"Valkey":   func(t *testing.T) string { return testserver.Valkey(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embedded(t, 1)
			if addr := server(t); addr != "" {
				s.Redis = addr
			}
			// Closed: on a busy machine, what cannot be counted in time must not count as let through.
			s.RateLimit, s.RateLimitFailsClosed = 1, true
			instances := []*app.Shop{start(t, s), start(t, s)}
			began := time.Now()
			through, refused := 0, 0
			for i := 0; refused < 6; i++ {
				switch w := cancelNothing(t, instances[i%2], "ann"); w.status {
				case http.StatusNotFound:
					through++
				case http.StatusTooManyRequests:
					refused++
				case http.StatusServiceUnavailable:
				default:
					t.Fatalf("got %d %s, want 404 or 429", w.status, w.body)
				}
				if time.Since(began) > time.Minute {
					t.Fatalf("%d requests were let through in a minute, %d were not", through, refused)
				}
			}
			if most := 5 + int(time.Since(began)/time.Second) + 1; through < 1 || through > most {
				t.Errorf("got %d requests through, want 1 to %d", through, most)
			}
			if w := cancelNothing(t, instances[0], "bob"); w.status == http.StatusTooManyRequests {
				t.Error("another buyer pays for it")
			}
		})
	}
}

// "RateLimitFailsClosed refuses such requests while Redis cannot count them,
// instead of letting them through." Each outage is told once.
func TestRateLimit_redisAway(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(*testing.T) (addr string, away, back func()){
		"gone": func(t *testing.T) (string, func(), func()) {
			server := miniredis.RunT(t)
			addr := server.Addr()
			return addr, server.Close, func() {
				if err := server.StartAddr(addr); err != nil {
					t.Error(err)
				}
			}
		},
		"silent": func(t *testing.T) (string, func(), func()) {
			server := testserver.StartRedis(t)
			return server.Addr(), func() { server.Pause(t) }, func() { server.Unpause(t) }
		},
	} {
		for _, c := range []struct {
			closed bool
			status int
			says   string
		}{
			{false, http.StatusNotFound, "order-not-found"},
			{true, http.StatusServiceUnavailable, "rate-unknown"},
		} {
			t.Run(fmt.Sprintf("%s, closed %v", name, c.closed), func(t *testing.T) {
				t.Parallel()
				addr, away, back := outage(t)
				log := &logbook.Book{}
				s := embedded(t, 1)
				s.Redis, s.RateLimit, s.RateLimitFailsClosed = addr, 1000, c.closed
				s.Log = slog.New(slog.NewTextHandler(log, nil))
				shop := start(t, s)
				until(t, "requests are counted", 30*time.Second, func() bool {
					return cancelNothing(t, shop, "ann").status == http.StatusNotFound
				})
				away()
				for range 3 {
					if w := cancelNothing(t, shop, "ann"); w.status != c.status || !strings.Contains(w.body, c.says) {
						t.Errorf("got %d %s, want %d, %s", w.status, w.body, c.status, c.says)
					}
				}
				back()
				until(t, "requests are counted again", 30*time.Second, func() bool {
					return cancelNothing(t, shop, "ann").status == http.StatusNotFound
				})
				began, ended := strings.Count(log.String(), `"requests of buyers cannot`), strings.Count(log.String(), "counted again")
				if began < 1 || began > ended+1 { // a busy machine may add one, and its end
					t.Errorf("outages began %d times and ended %d times:\n%s", began, ended, log.String())
				}
			})
		}
	}
}
