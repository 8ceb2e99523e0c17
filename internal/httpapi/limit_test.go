package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
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

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unread")
}

// "Config.Limiter counts a buyer's changes: POSTs below /v1/orders, whatever else is wrong with them." A
// token comes first, reading is not limited, nor is another buyer.
func TestLimiter(t *testing.T) {
	server := miniredis.RunT(t)
	server.SetTime(time.Now()) // it stands still
	s := newShop(t, func(c *httpapi.Config) { withTokens(t)(c); c.Limiter = limiterOn(t, server, 1, c.Log) })
	s.supply(t, "mug", 3)
	ann, bob := shows(t, shopSecret, "ann"), shows(t, shopSecret, "bob")
	path := s.place(t, "key-1", "1", ann)
	wantProblem(t, s.buy(t, "key-1", goodOrder), "401 no-token") // counts for nobody
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
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, unread{t})
		r.Header.Set("Authorization", strings.TrimPrefix(ann, "Authorization: "))
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if p := wantProblem(t, w, "429 rate-limited"); w.Header().Get("Retry-After") != "1" || p["retry_safe"] != true {
			t.Errorf("got Retry-After %q, %v, want 1 and retry_safe", w.Header().Get("Retry-After"), p)
		}
	}
	wantStatus(t, s.call(t, "GET "+path, "", ann), http.StatusOK)
	wantStatus(t, s.buy(t, "key-1", goodOrder, bob), http.StatusCreated)
}

// A burst of one buyer, of which each request goes to another of two instances, is bounded by the limit, also while
// Redis is away and without one: then by one for each instance.
func TestLimiter_burst(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Redis counts", "Redis is away", "without Redis"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apart, server := name != "Redis counts", miniredis.RunT(t)
			var log testserver.LogBuffer
			var instances []*shop
			for range 2 {
				instances = append(instances, newShop(t, func(c *httpapi.Config) {
					c.Limiter = limiterOn(t, server, 2, slog.New(slog.NewTextHandler(&log, nil)))
					if name == "without Redis" {
						c.Limiter = httpapi.NewLimiter(nil, 2, c.Log)
					}
					c.Orders = failing(order.ErrSoldOut)
				}))
			}
			if name == "Redis is away" {
				server.Close()
			}
			var through atomic.Int64
			var all sync.WaitGroup
			began := time.Now()
			for i := range 1000 {
				all.Go(func() {
					if w := instances[i%2].buy(t, "key", goodOrder); w.Code == http.StatusConflict {
						through.Add(1)
					}
				})
			}
			all.Wait()
			buckets := 1
			if apart || log.String() != "" { // a busy machine does not count in time, either
				buckets = 2
			}
			most := int64(buckets * (10 + 2*int(time.Since(began)/time.Second+1)))
			if got := through.Load(); got > most || apart && got < 20 {
				t.Errorf("got %d requests through, want at most %d, and 20 at least where each counts by itself", got, most)
			}
		})
	}
}

// An outage is logged, once in a second; the shop writes no line for each request that it turns away. After a second
// Redis counts again.
func TestLimiter_outage(t *testing.T) {
	t.Parallel()
	var log testserver.LogBuffer
	server := miniredis.RunT(t)
	s := newShop(t, func(c *httpapi.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Limiter, c.Orders = limiterOn(t, server, 1000, c.Log), failing(order.ErrSoldOut)
	})
	server.SetError("LOADING")
	began := time.Now()
	for range 5 {
		wantProblem(t, s.buy(t, "key-1", goodOrder), "409 sold-out")
	}
	server.SetError("")
	testserver.Until(t, "Redis counts", 10*time.Second, func() bool {
		wantProblem(t, s.buy(t, "key-1", goodOrder), "409 sold-out")
		return len(server.Keys()) > 0
	})
	text := log.String()
	lines, most := strings.Count(text, "cannot be counted"), 1+int(time.Since(began)/time.Second)
	if lines < 1 || lines > most || strings.Contains(text, "msg=request ") {
		t.Errorf("got log %s, want the outage and no line of a request", text)
	}
}

// gate lets requests in, and holds them until it opens.
type gate struct{ entered, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

func (g gate) hold() {
	g.entered <- struct{}{}
	<-g.open
}

// "After Redis' clock stepped back, a buyer's bucket there begins anew."
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

// "Config.MaxInFlight bounds the requests below /v1/ that run or wait." A busy shop writes no line for each
// request that it turns away.
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
	for _, path := range []string{"/v1/skus", "/v1/orders/1", "/v1/strategies"} {
		w := s.call(t, "GET "+path, "")
		wantProblem(t, w, "503 overloaded")
		if w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got header %v, want Retry-After and no-store", w.Header())
		}
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/orders", unread{t}))
	wantProblem(t, w, "503 overloaded")
	if log.Len() > 0 {
		t.Errorf("got log %s, want none of what was turned away", &log)
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

// gatedStock is a stock whose reads wait.
type gatedStock struct {
	httpapi.Stock
	gate
}

func (g gatedStock) SKU(context.Context, string) (stock.SKU, error) {
	g.hold()
	return stock.SKU{Name: "mug", Price: stock.Money{Currency: "EUR"}}, nil
}

// "Reads that need no token have a quarter of it, and run a few at a time": a crowd of readers does not keep an order
// out.
func TestReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, share = 800, 200
		g := newGate()
		handler := httpapi.New(httpapi.Config{
			Orders: failing(order.ErrSoldOut), Stock: gatedStock{nil, g}, Log: slog.New(slog.DiscardHandler), MaxInFlight: most,
		})
		answers := make(chan int, most)
		for range most {
			go func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/skus/mug", http.NoBody))
				answers <- w.Code
			}()
		}
		synctest.Wait()
		if refused := len(answers); refused != most-share {
			t.Errorf("got %d answers, want %d that the share of reads is used up", refused, most-share)
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
		if running == 0 || running > share/2 {
			t.Errorf("got %d reads that run at a time, want a few", running)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/orders", strings.NewReader(goodOrder))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"key-1"}}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		wantProblem(t, w, "409 sold-out")
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
}
