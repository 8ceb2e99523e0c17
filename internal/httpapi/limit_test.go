package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testserver"
)

func limiterOn(t *testing.T, server *miniredis.Miniredis, perSecond int, log *slog.Logger) *httpapi.Limiter {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return httpapi.NewLimiter(client, perSecond, log)
}

// unread is a body that no handler may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unread")
}

// "Config.Limiter counts a buyer's changes: the POST requests below /v1/orders, valid or not." The token is checked
// first. Neither reads nor the requests of another buyer count.
func TestLimiter(t *testing.T) {
	server := miniredis.RunT(t)
	server.SetTime(time.Now()) // it stands still
	s := newShop(t, func(c *httpapi.Config) { withTokens(t)(c); c.Limiter = limiterOn(t, server, 1, c.Log) })
	s.supply(t, "mug", 3)
	ann, bob := shows(t, shopSecret, "ann"), shows(t, shopSecret, "bob")
	path := s.place(t, "key-1", "1", ann)
	wantProblem(t, s.buy(t, "key-1", goodOrder), "401 no-token") // counts for no buyer
	through := 1
	for range 20 {
		if w := s.call(t, "POST "+path+"/cancel", "{", ann); w.Code != http.StatusTooManyRequests {
			wantProblem(t, w, "415 media-type")
			through++
		}
	}
	if through != 5 {
		t.Errorf("got %d requests through, want a burst of 5", through)
	}
	for _, path := range []string{"/v1/orders", path + "/pay", path + "/cancel"} {
		w := s.send(t, s.handler, "POST "+path, unread{t}, ann)
		if p := wantProblem(t, w, "429 rate-limited"); w.Header().Get("Retry-After") != "1" || p["retry_safe"] != true {
			t.Errorf("got Retry-After %q, %v, want 1 and retry_safe", w.Header().Get("Retry-After"), p)
		}
	}
	wantStatus(t, s.call(t, "GET "+path, "", ann), http.StatusOK)
	wantStatus(t, s.buy(t, "key-1", goodOrder, bob), http.StatusCreated)
}

// A burst of one buyer goes to two instances in turn. The limit bounds the burst; without Redis, or while Redis is
// away, the limit of each instance does. "If a burst goes to several instances, each instance may admit a quarter of
// perSecond more", so that "most buyers never wait for Redis". A client that leaves whenever Redis would be asked is
// limited like any other.
func TestLimiter_burst(t *testing.T) {
	t.Parallel()
	for name, perSecond := range map[string]int{
		"Redis counts": 2, "Redis counts some": 40, "Redis counts, and the client leaves": 40, "Redis is away": 2, "without Redis": 2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			burst := 5 * perSecond
			apart, server := !strings.HasPrefix(name, "Redis counts"), miniredis.RunT(t)
			var log testserver.LogBuffer
			var instances []*shop
			for range 2 {
				instances = append(instances, newShop(t, func(c *httpapi.Config) {
					c.Limiter = limiterOn(t, server, perSecond, slog.New(slog.NewTextHandler(&log, nil)))
					if name == "without Redis" {
						c.Limiter = httpapi.NewLimiter(nil, perSecond, c.Log)
					}
					c.Orders = failing(order.ErrSoldOut)
				}))
			}
			if name == "Redis is away" {
				server.Close()
			}
			gone, leave := context.WithCancel(t.Context())
			leave()
			through, began := 0, time.Now()
			for i := range 20 * burst { // one after the other: of a crowd, a busy machine would not count some, in silence
				ctx := t.Context()
				if strings.HasSuffix(name, "leaves") && i/2%(perSecond/4+1) == perSecond/4 {
					ctx = gone
				}
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/orders", strings.NewReader(goodOrder))
				r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"key"}}
				w := httptest.NewRecorder()
				if instances[i%2].handler.ServeHTTP(w, r); w.Code == http.StatusConflict {
					through++
				}
				if asked := len(server.Keys()) > 0; asked && i/2 < perSecond/4 {
					t.Errorf("Redis was asked after %d requests", i+1)
				}
			}
			buckets := 1
			if apart || log.String() != "" { // a busy machine does not count in time, either
				buckets = 2
			}
			most := buckets*(burst+perSecond*int(time.Since(began)/time.Second+1)) + 2*(perSecond/4)
			if through > most || through < burst || apart && through < 2*burst {
				t.Errorf("got %d requests through, want at most %d, and a burst at least, of each where it counts by itself", through, most)
			}
		})
	}
}

// An outage is logged; the shop writes no line for each request that it turns away. After a second Redis counts again.
func TestLimiter_outage(t *testing.T) {
	t.Parallel()
	var log testserver.LogBuffer
	server := miniredis.RunT(t)
	s := newShop(t, func(c *httpapi.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Limiter, c.Orders = limiterOn(t, server, 40, c.Log), failing(order.ErrSoldOut)
	})
	server.SetError("LOADING")
	for range 40/4 + 1 {
		wantProblem(t, s.buy(t, "key-1", goodOrder), "409 sold-out")
	}
	server.SetError("")
	testserver.Until(t, "Redis counts", 10*time.Second, func() bool {
		wantProblem(t, s.buy(t, "key-1", goodOrder), "409 sold-out")
		return len(server.Keys()) > 0
	})
	testserver.Until(t, "the outage is over", 10*time.Second, func() bool { return log.Has("cannot be counted in redis: over") })
	if log.Has("msg=request ") {
		t.Errorf("got log %s, want no line of a request", &log)
	}
}

// "After Redis has failed, only the local bucket limits, and no request waits for Redis." Redis is silent for twelve
// seconds, and only the first request waits, for a tenth of a second.
func TestLimiter_silence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, MaxRetries: -1, // no name, which would be looked up
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				asked++
				ours, its := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, its) }()
				return ours, nil
			},
		})
		_, send := newGated(t, func(c *httpapi.Config) { c.Limiter = httpapi.NewLimiter(client, 3, c.Log) })
		began := time.Now() // by the bubble's clock
		var waited []time.Duration
		for time.Since(began) < 12*time.Second {
			sent := time.Now()
			wantProblem(t, send("ann", "POST /v1/orders"), "409 sold-out")
			waited = append(waited, time.Since(sent))
			time.Sleep(250 * time.Millisecond)
		}
		for i, took := range waited {
			if i == 0 && took != 100*time.Millisecond || i > 0 && took != 0 {
				t.Errorf("request %d waited for %v", i, took)
			}
		}
		if asked < 10 || asked > 12 {
			t.Errorf("Redis was asked %d times, want once in a second", asked)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

// gate lets requests in, and holds them until it opens.
type gate struct{ entered, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

func (g gate) hold() {
	g.entered <- struct{}{}
	<-g.open
}

// "If the clock of Redis has stepped back, ask resets the buyer's bucket in Redis."
func TestLimiter_clock(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := newShop(t, func(c *httpapi.Config) {
		c.Limiter = limiterOn(t, server, 20, c.Log)
		c.Orders = failing(order.ErrSoldOut)
	})
	for _, ahead := range []time.Duration{time.Hour, 0, -time.Hour} {
		server.SetTime(time.Now().Add(ahead))
		if w := s.buy(t, "key", goodOrder); w.Code != http.StatusConflict {
			t.Errorf("Redis %v ahead: got %d, want it through", ahead, w.Code)
		}
	}
}

// "Config.MaxInFlight bound the requests of all buyers below /v1/." A busy shop does not log each
// request that it refuses.
func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	const most = 3
	g := newGate()
	var log bytes.Buffer
	s := newShop(t, func(c *httpapi.Config) {
		c.Orders = fake{place: func(context.Context, order.Request) (order.Order, bool, error) {
			g.hold()
			return order.Order{}, false, order.ErrBusy
		}}
		c.MaxInFlight, c.Log = most, slog.New(slog.NewTextHandler(&log, nil))
	})
	answers := make(chan *httptest.ResponseRecorder, most)
	for range most {
		go func() { answers <- s.buy(t, "key-1", goodOrder) }()
	}
	for range most {
		<-g.entered
	}
	for _, path := range []string{"/v1/skus", "/v1/orders/1", "/v1/orders"} {
		w := s.call(t, "GET "+path, "")
		wantProblem(t, w, "503 overloaded")
		if w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got header %v, want Retry-After and no-store", w.Header())
		}
	}
	wantProblem(t, s.send(t, s.handler, "POST /v1/orders", unread{t}), "503 overloaded")
	if log.Len() > 0 {
		t.Errorf("got log %s, want no line about refused requests", &log)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		wantStatus(t, s.call(t, "GET "+path, ""), http.StatusOK)
	}
	close(g.open)
	for range most {
		wantProblem(t, <-answers, "503 busy")
	}
	wantStatus(t, s.call(t, "GET /v1/skus", ""), http.StatusOK) // their places are free again
}

// gated is a shop whose orders fail, and whose reads wait.
type gated struct {
	fake
	httpapi.Store
	gate
}

func (g gated) SKU(context.Context, string) (stock.SKU, error) {
	g.hold()
	return stock.SKU{Name: "mug", Price: stock.Money{Currency: "EUR"}}, nil
}

func (g gated) Orders(context.Context, string, string, int) ([]order.Order, error) {
	g.hold()
	return nil, nil
}

func (g gated) Payments(context.Context, order.PaymentList, string, int) ([]order.Payment, error) {
	g.hold()
	return nil, nil
}

func (g gated) Movements(context.Context, string, string, int) ([]stock.Movement, error) {
	g.hold()
	return nil, nil
}

func (g gated) Audit(context.Context, string, func(stock.Account) error, func(stock.Difference) error) error {
	g.hold()
	return nil
}

// newGated returns the shop, and how a buyer, or the operator, sends it a request.
func newGated(t *testing.T, change func(*httpapi.Config)) (g gated, send func(buyer, request string) *httptest.ResponseRecorder) {
	g = gated{fake: failing(order.ErrSoldOut), gate: newGate()}
	config := httpapi.Config{
		Orders: g, Store: g, Identify: byHeader, OperatorToken: secret(t, operatorToken), Log: slog.New(slog.DiscardHandler),
	}
	change(&config)
	buyers, operators := httpapi.New(config), httpapi.NewOperator(config)
	return g, func(buyer, request string) *httptest.ResponseRecorder {
		handler := buyers
		if buyer == operator {
			handler = operators
		}
		method, path, _ := strings.Cut(request, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(goodOrder))
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Idempotency-Key": {"key-1"},
			"Shop-Buyer": {buyer}, "Authorization": {"Bearer " + operatorToken},
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
}

const operator = "operator" // who sends a request

const someOrder = "/v1/orders/0190d0c0-0000-7000-8000-000000000000"

// "The reads of each route have an eighth of MaxInFlight, and run a few at a time": a crowd of readers keeps out
// neither orders nor other reads. "The operator's API has the same limits, and its reads of each route
// run one at a time".
func TestReads(t *testing.T) {
	t.Parallel()
	for read, by := range map[string]string{
		"GET /v1/skus/mug": "ann", "GET /v1/orders": "ann",
		"GET /v1/audit": operator, "GET /v1/payments": operator, "GET /v1/skus/mug/movements": operator,
	} {
		t.Run(read, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const most, share = 800, 100
				g, send := newGated(t, func(c *httpapi.Config) { c.MaxInFlight = most })
				answers := make(chan int, most)
				for range most {
					go func() { answers <- send(by, read).Code }()
				}
				synctest.Wait()
				if refused := len(answers); refused != most-share {
					t.Errorf("got %d answers, want %d that the share of the route is used up", refused, most-share)
				}
				running := 0
				for ; running < share; running++ {
					select {
					case <-g.entered:
						continue
					case <-time.After(time.Second):
					}
					break
				}
				if running == 0 || running > share/2 || by == operator && running > 1 {
					t.Errorf("got %d reads that run at a time, want a few, and one of the operator", running)
				}
				if w := send(operator, "POST /v1/skus"); w.Code != http.StatusBadRequest {
					t.Errorf("got %d for a SKU that is an order, want 400", w.Code)
				}
				wantProblem(t, send("ann", "POST /v1/orders"), "409 sold-out")
				wantProblem(t, send("ann", "GET "+someOrder), "409 sold-out")
				go func() {
					for range share - running {
						<-g.entered
					}
				}()
				close(g.open)
				synctest.Wait()
				if got := len(answers); got != most {
					t.Errorf("got %d answers, want %d", got, most)
				}
			})
		})
	}
}

// "At a time, a buyer may have as many requests in progress, reads included, as a burst has": the lists of one buyer
// keep out no other buyer, whatever all may have in flight, and are answered. Then that buyer is served as before.
func TestLimiter_inFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const burst = 5
		g, send := newGated(t, func(c *httpapi.Config) {
			c.Limiter, c.MaxInFlight = httpapi.NewLimiter(nil, 1, c.Log), 16*burst
		})
		answers := make(chan int, burst)
		for range burst {
			go func() { answers <- send("ann", "GET /v1/orders").Code }()
		}
		for range burst {
			<-g.entered
		}
		for range 2 * 16 * burst {
			for _, request := range []string{"GET /v1/orders", "GET " + someOrder, "POST /v1/orders", "POST " + someOrder + "/pay"} {
				w := send("ann", request)
				if p := wantProblem(t, w, "429 too-many-in-flight"); w.Header().Get("Retry-After") != "1" || p["retry_safe"] != true {
					t.Errorf("%s: got Retry-After %q, %v, want 1 and retry_safe", request, w.Header().Get("Retry-After"), p)
				}
			}
		}
		wantProblem(t, send("bob", "POST /v1/orders"), "409 sold-out")
		wantProblem(t, send("bob", "GET "+someOrder), "409 sold-out")
		close(g.open)
		for range burst {
			if code := <-answers; code != http.StatusOK {
				t.Errorf("got %d for a list, want 200", code)
			}
		}
		synctest.Wait()
		wantProblem(t, send("ann", "POST /v1/orders"), "409 sold-out")
	})
}
