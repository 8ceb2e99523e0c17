package crowd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// fakeShop sells without a mistake of its own and lets a test add some.
type fakeShop struct {
	*httptest.Server

	// before, if set, may answer a try itself, by returning true, before anything is sold; after, once it is. tries
	// counts from 1 for each buyer.
	before, after func(w http.ResponseWriter, r *http.Request, tries int) bool

	mu        sync.Mutex
	available int
	orders    map[string]shopclient.Order // by idempotency key
	owners    map[string]string           // buyer by order id
	tries     map[string]int              // by idempotency key
	connected int                         // buyers who came to the door
	early     int                         // of those, how many were there when the first order came
	opened    int                         // connections
}

func newFakeShop(t *testing.T, units int) *fakeShop {
	t.Helper()
	s := &fakeShop{
		available: units,
		early:     -1,
		orders:    map[string]shopclient.Order{},
		owners:    map[string]string{},
		tries:     map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.connected++
	})
	mux.HandleFunc("POST /v1/orders", s.buy)
	mux.HandleFunc("GET /v1/orders/{id}", s.show)
	mux.HandleFunc("POST /v1/orders/{id}/{end}", s.show)
	s.Server = httptest.NewUnstartedServer(mux)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if state == http.StateNew {
			s.opened++
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *fakeShop) buy(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	// Read to its end, or the server would not notice a buyer who hangs up.
	var wanted shopclient.Order
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		problem(w, http.StatusBadRequest, "malformed")
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	s.tries[key]++
	tries := s.tries[key]
	if s.early < 0 {
		s.early = s.connected
	}
	s.mu.Unlock()
	if s.before != nil && s.before(w, r, tries) {
		return
	}
	o, ok := s.sell(r.Header.Get("Shop-Buyer"), key, wanted)
	if s.after != nil && s.after(w, r, tries) {
		return
	}
	if !ok {
		problem(w, http.StatusConflict, "sold-out")
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(o)
}

func (s *fakeShop) sell(buyer, key string, o shopclient.Order) (placed shopclient.Order, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, seen := s.orders[key]; seen {
		return o, true
	}
	if s.available == 0 {
		return o, false
	}
	s.available--
	o.ID, o.Status = fmt.Sprintf("order-%d", len(s.orders)+1), "pending"
	s.orders[key] = o
	s.owners[o.ID] = buyer
	return o, true
}

// show answers an order to its buyer, which the request may cancel, or to the payment service, which pays it, unless
// before answers the request.
func (s *fakeShop) show(w http.ResponseWriter, r *http.Request) {
	if s.before != nil && s.before(w, r, 1) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, o := range s.orders {
		if o.ID == r.PathValue("id") && (s.owners[o.ID] == r.Header.Get("Shop-Buyer") || r.PathValue("end") == "pay") {
			o.Status = cmp.Or(r.PathValue("end"), o.Status)
			s.orders[key] = o
			_ = json.NewEncoder(w).Encode(o)
			return
		}
	}
	problem(w, http.StatusNotFound, "order-not-found")
}

func problem(w http.ResponseWriter, status int, slug string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"/problems/%s","title":"%s","status":%d}`, slug, slug, status)
}

// cut closes the connection without an answer.
func cut() { panic(http.ErrAbortHandler) }

// raceIn is a race of a crowd whose patience suits a test.
func raceIn(crowd int, shops ...*fakeShop) Race {
	r := Race{
		Strategy:       "redis",
		SKUs:           []string{"thing"},
		Buyers:         crowd,
		Timeout:        10 * time.Second,
		RequestTimeout: 10 * time.Second,
		Patience:       Patience{Tries: 4, Pause: time.Millisecond, MaxPause: 2 * time.Millisecond},
		Tally:          new(Tally),
	}
	for _, s := range shops {
		r.Shops = append(r.Shops, func(conns *http.Client) *shopclient.Client { return shopclient.New(s.URL, conns) })
	}
	return r
}

// hold holds a race that does not fail.
func hold(t *testing.T, race Race) Log {
	t.Helper()
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// outcomes counts what became of the orders.
type outcomes = map[Outcome]int

func count(l Log) outcomes {
	o := outcomes{}
	for _, r := range l.Records {
		o[r.Outcome]++
	}
	return o
}
