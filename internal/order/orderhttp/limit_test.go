package orderhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
)

// share is a limiter that lets a number of requests of each buyer through.
type share struct {
	mu   sync.Mutex
	left map[string]int
	err  error
}

func (s *share) Allow(_ context.Context, buyer string) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left[buyer]--; s.left[buyer] < 0 {
		return 2500 * time.Millisecond, s.err
	}
	return -1, s.err
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unread")
}

// "POSTs below /v1/orders, after the token was verified and, of pay and cancel,
// before anything else is read. Who asks for more gets a 429, whatever else is wrong
// with the request."
func TestLimiter(t *testing.T) {
	t.Parallel()
	limiter := &share{left: map[string]int{"ann": 2, "bob": 1}}
	b := setup(t, func(c *orderhttp.Config) { c.Buyers, c.Limiter = tokens(t, shopSecret), limiter })
	b.supply(t, "mug", 3)
	ann, bob := shows(t, shopSecret, "ann"), shows(t, shopSecret, "bob")

	w := b.buy(t, "key-1", goodOrder, ann)
	wantStatus(t, w, http.StatusCreated)
	place := w.Header().Get("Location")
	wantProblem(t, b.buy(t, "key-1", goodOrder), 401, "no-token") // counts for nobody
	wantStatus(t, b.call(t, http.MethodPost, place+"/pay", "", ann), http.StatusOK)
	for _, path := range []string{"/v1/orders", place + "/pay", place + "/cancel"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, unread{t})
		name, value, _ := strings.Cut(ann, ": ")
		r.Header.Set(name, value)
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		problem := wantProblem(t, w, 429, "rate-limited")
		if after := w.Header().Get("Retry-After"); after != "3" || problem["retry_safe"] != true {
			t.Errorf("got Retry-After %q, %v, want 3 for 2.5 s, and retry_safe", after, problem)
		}
	}
	wantStatus(t, b.call(t, http.MethodGet, place, "", ann), http.StatusOK) // reading is not limited
	wantStatus(t, b.buy(t, "key-1", goodOrder, bob), http.StatusCreated)    // nor is another buyer
	b.wantClean(t)
}

// forgetful is a service that remembers one SKU to be sold out.
type forgetful struct {
	bureau
	sku string
}

func (f forgetful) SoldOut(r order.Request) bool {
	return r.Validate() == nil && r.Lines[0].SKU == f.sku
}

// "Not counted is an order that is refused because its SKU is remembered to be sold
// out": others are, whatever their mistakes, and get the statuses that they had.
func TestLimiter_soldOut(t *testing.T) {
	t.Parallel()
	limiter := &share{left: map[string]int{"ann": 2, "bob": 5}}
	ann, bob := shows(t, shopSecret, "ann"), shows(t, shopSecret, "bob")
	b := setup(t, func(c *orderhttp.Config) {
		c.Buyers, c.Limiter = tokens(t, shopSecret), limiter
		c.Orders = forgetful{c.Orders, "mug"}
	})
	b.supply(t, "mug", 0)
	b.supply(t, "hat", 5)
	hat := strings.Replace(goodOrder, "mug", "hat", 1)
	for range 10 {
		wantProblem(t, b.buy(t, "key-1", goodOrder, ann), 409, "sold-out")
	}
	wantProblem(t, b.buy(t, "key-1", goodOrder), 401, "no-token")
	wantProblem(t, b.buy(t, "key-1", `{"lines":`, bob), 400, "malformed")
	wantProblem(t, b.buy(t, "", goodOrder, bob), 400, "key-missing")
	wantProblem(t, b.call(t, http.MethodPost, "/v1/orders?x=1", goodOrder, bob, "Idempotency-Key: k", "Content-Type: application/json"), 400, "malformed")
	if got := limiter.left["bob"]; got != 2 {
		t.Errorf("bob may send %d more, want 2: mistakes count", got)
	}
	wantStatus(t, b.buy(t, "key-1", hat, ann), http.StatusCreated)
	wantStatus(t, b.buy(t, "key-2", hat, ann), http.StatusCreated)
	wantProblem(t, b.buy(t, "key-3", hat, ann), 429, "rate-limited")
	wantProblem(t, b.buy(t, "key-3", `{"lines":`, ann), 429, "rate-limited")
	wantProblem(t, b.buy(t, "key-3", goodOrder, ann), 409, "sold-out")
}

// "With nil the header Shop-Buyer is believed": then the name counts, and what is
// no name is refused before it is counted.
func TestLimiter_names(t *testing.T) {
	t.Parallel()
	limiter := &share{left: map[string]int{"ann": 1, "guest": 1}}
	b := setup(t, func(c *orderhttp.Config) { c.Limiter = limiter })
	b.supply(t, "mug", 3)
	wantStatus(t, b.buy(t, "key-1", goodOrder, "Shop-Buyer: ann"), http.StatusCreated)
	wantStatus(t, b.buy(t, "key-1", goodOrder), http.StatusCreated)
	wantProblem(t, b.buy(t, "key-2", goodOrder, "Shop-Buyer: ann"), 429, "rate-limited")
	wantProblem(t, b.buy(t, "key-2", goodOrder), 429, "rate-limited")
	wantProblem(t, b.buy(t, "key-2", goodOrder, "Shop-Buyer: a b"), 422, "invalid-order")
	if len(limiter.left) != 2 {
		t.Errorf("got counts of %v, want those of ann and guest", limiter.left)
	}
}

// "An error means that it could not be counted and must not go on." The shop "must not
// have a line to write for each request that it turns away": the limiter tells.
func TestLimiter_fails(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := setup(t, func(c *orderhttp.Config) {
		c.Limiter = &share{left: map[string]int{"guest": 9}, err: context.DeadlineExceeded}
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	b.supply(t, "mug", 3)
	w := b.buy(t, "key-1", goodOrder)
	wantProblem(t, w, 503, "rate-unknown")
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("got header %v, want Retry-After", w.Header())
	}
	if log.Len() > 0 {
		t.Errorf("got log %s, want none of what was turned away", &log)
	}
	b.wantUntouched(t, "mug", 3)
}

// gate is a service whose orders wait until it opens.
type gate struct {
	broken
	entered chan struct{}
	open    chan struct{}
}

func (g gate) Place(context.Context, order.Request) (order.Order, bool, error) {
	g.entered <- struct{}{}
	<-g.open
	return order.Order{}, false, g.err
}

// "Config.MaxInFlight bounds the requests that are worked on or wait; one more
// gets a 503. Health checks count for neither." It "must not have a line to write
// for each request that it turns away".
func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	const most = 3
	g := gate{broken{order.ErrBusy}, make(chan struct{}), make(chan struct{})}
	var log bytes.Buffer
	b := setup(t, func(c *orderhttp.Config) {
		c.Orders, c.MaxInFlight = g, most
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	answers := make(chan *httptest.ResponseRecorder, most)
	for range most {
		go func() { answers <- b.buy(t, "key-1", goodOrder) }()
	}
	for range most {
		<-g.entered
	}
	for _, path := range []string{"/v1/skus", "/v1/orders/1", "/v1/strategies", "/openapi.yaml", "/nowhere"} {
		w := b.call(t, http.MethodGet, path, "")
		wantProblem(t, w, 503, "overloaded")
		if w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got header %v, want Retry-After and no-store", w.Header())
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/orders", unread{t})
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	wantProblem(t, w, 503, "overloaded")
	if log.Len() > 0 {
		t.Errorf("got log %s, want none of what was turned away", &log)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		wantStatus(t, b.call(t, http.MethodGet, path, ""), http.StatusOK)
	}
	close(g.open)
	for range most {
		wantProblem(t, <-answers, 503, "busy")
	}
	wantStatus(t, b.call(t, http.MethodGet, "/v1/skus", ""), http.StatusOK) // their places are free again
}

// stalled is a body that begins and does not go on.
type stalled struct{ begun, goOn chan struct{} }

func (s stalled) Read([]byte) (int, error) {
	s.begun <- struct{}{}
	<-s.goOn
	return 0, errors.New("no more comes")
}

// "Whoever sends slowly holds up no more than that."
func TestLimiter_slowBodies(t *testing.T) {
	t.Parallel()
	limiter := &share{left: map[string]int{}}
	b := setup(t, func(c *orderhttp.Config) { c.Buyers, c.Limiter = tokens(t, shopSecret), limiter })
	name, value, _ := strings.Cut(shows(t, shopSecret, "ann"), ": ")
	send := func(body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/orders", body)
		r.Header = http.Header{name: {value}, "Content-Type": {"application/json"}, "Idempotency-Key": {"key"}}
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		return w
	}
	slow := stalled{begun: make(chan struct{}), goOn: make(chan struct{})}
	var waiting sync.WaitGroup
	for range orderhttp.MaxPeeks {
		waiting.Go(func() {
			if w := send(slow); w.Code != http.StatusTooManyRequests {
				t.Errorf("got %d %s, want 429", w.Code, w.Body)
			}
		})
	}
	for range orderhttp.MaxPeeks {
		<-slow.begun
	}
	wantProblem(t, send(unread{t}), 429, "rate-limited")
	close(slow.goOn)
	waiting.Wait()
}
