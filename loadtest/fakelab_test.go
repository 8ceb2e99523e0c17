package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// lying is a shop that sells to every buyer, whatever it has.
type lying struct {
	*httptest.Server
	status  string // of every order; set before the race
	silent  bool   // the first buyer gets no answer, and an order right after the first audit
	problem string // answers each request for an order, if it is set

	mu     sync.Mutex
	units  int64
	orders int64
	sku    string
	unsure string // idempotency key of the buyer without an answer
}

// newLab starts one with a single strategy, or with none, as another shop, if the name is empty.
func newLab(t *testing.T, strategy string, designed bool) *lying {
	t.Helper()
	s := new(lying)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/skus", s.create)
	mux.HandleFunc("POST /v1/orders", s.buy)
	mux.HandleFunc("GET /v1/orders/{id}", s.show)
	mux.HandleFunc("GET /v1/audit", s.audit)
	if strategy != "" {
		mux.HandleFunc("GET /v1/strategies", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"strategies":[{"name":%q,"designed":%v,"lesson":"Trust me.","available":true}]}`, strategy, designed)
		})
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *lying) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		SKU   string
		Units int64
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sku, s.units, s.orders = body.SKU, body.Units, 0
	w.WriteHeader(http.StatusCreated)
}

func (s *lying) order(w http.ResponseWriter, id string) {
	fmt.Fprintf(w, `{"id":%q,"status":%q,"lines":[{"sku":%q,"quantity":1}]}`, id, s.status, s.sku)
}

func (s *lying) buy(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"type":"/problems/%s"}`, s.problem)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if s.silent {
		s.silent, s.unsure = false, key
	}
	if key == s.unsure {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.orders++
	w.WriteHeader(http.StatusCreated)
	s.order(w, strconv.FormatInt(s.orders, 10))
}

func (s *lying) show(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order(w, r.PathValue("id"))
}

func (s *lying) audit(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(w, `{"ok":%v,"skus":[{"sku":%q,"supplied":%d,"orders":%d,"ordered_units":%d,"oversold":%d}]}`,
		s.orders <= s.units, s.sku, s.units, s.orders, s.orders, max(0, s.orders-s.units))
	if s.unsure != "" {
		s.orders++
		s.unsure = ""
	}
}
