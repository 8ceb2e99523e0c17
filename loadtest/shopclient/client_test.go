package shopclient_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"example.com/shop/internal/lab"
	"example.com/shop/loadtest/shopclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns a client of a shop that answers with handle.
func connect(t *testing.T, handle http.HandlerFunc) *shopclient.Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	conns := shopclient.NewConnections(1, 10*time.Second)
	t.Cleanup(conns.CloseIdleConnections)
	return shopclient.New(server.URL+"/", conns)
}

func TestClient_Buy_answer(t *testing.T) {
	t.Parallel()
	soldOut := shopclient.Problem{Type: "/problems/sold-out", Title: "Sold out", Detail: "none left"}
	tests := []struct {
		name   string
		status int
		header map[string]string
		body   string
		want   shopclient.Answer
		fails  bool
	}{
		{
			name: "placed", status: 201, body: `{"id":"o-1"}`,
			want: shopclient.Answer{Status: 201, Order: shopclient.Order{ID: "o-1"}},
		},
		{
			name: "refused", status: 409, body: `{"type":"/problems/sold-out","title":"Sold out","detail":"none left"}`,
			want: shopclient.Answer{Status: 409, Problem: soldOut},
		},
		{
			name: "busy", status: 503, header: map[string]string{"Retry-After": "2"}, body: `{"title":"Busy"}`,
			want: shopclient.Answer{Status: 503, Problem: shopclient.Problem{Title: "Busy"}, RetryAfter: 2 * time.Second},
		},
		{
			name: "a load balancer's page", status: 502, body: "<html>",
			want: shopclient.Answer{Status: 502, Problem: shopclient.Problem{Detail: `"<html>"`}},
		},
		{
			name: "a date to retry after is left to the buyer", status: 503, body: `{}`,
			header: map[string]string{"Retry-After": "Sat, 21 Nov 2026 12:00:00 GMT"},
			want:   shopclient.Answer{Status: 503},
		},
		{name: "a broken order", status: 201, body: `{"id":`, fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range tt.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			got, err := client.Buy(t.Context(), shopclient.Purchase{Key: "k", Lines: []shopclient.Line{{SKU: "mug", Units: 1}}})
			if (err != nil) != tt.fails {
				t.Fatalf("error: got %v, want one: %v", err, tt.fails)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// "It sends each request once." net/http itself would repeat a request with an Idempotency-Key if a
// connection breaks that was used before.
func TestClient_once(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	client := connect(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			requests.Add(1)
			panic(http.ErrAbortHandler)
		}
	})
	for name, ask := range map[string]func() (shopclient.Answer, error){
		"Buy": func() (shopclient.Answer, error) {
			return client.Buy(t.Context(), shopclient.Purchase{Key: "k", Lines: []shopclient.Line{{SKU: "mug", Units: 1}}})
		},
		"Cancel": func() (shopclient.Answer, error) { return client.Cancel(t.Context(), "ann", "o-1", "k") },
		"Look":   func() (shopclient.Answer, error) { return client.Look(t.Context(), "ann", "o-1") },
	} {
		if err := client.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		requests.Store(0)
		if _, err := ask(); err == nil || requests.Load() != 1 {
			t.Errorf("%s: got error %v and %d requests, want a broken connection and 1 request", name, err, requests.Load())
		}
	}
}

// ErrUnavailable: "the shop, or a server that it needs, is too busy".
func TestClient_unavailable(t *testing.T) {
	t.Parallel()
	client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"title":"Lock's store does not answer"}`))
	})
	_, err := client.Move(t.Context(), lab.Expire, "a-1")
	if !errors.Is(err, shopclient.ErrUnavailable) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v, want %v with the title", err, shopclient.ErrUnavailable)
	}
}

// "There is one connection, which stays open until another shop is asked": the other shop answers when the first has
// lost its connection.
func TestNewBuyer(t *testing.T) {
	t.Parallel()
	hungUp := make(chan struct{}, 2)
	var opened atomic.Int64
	serve := func(answer http.HandlerFunc) string {
		shop := httptest.NewUnstartedServer(answer)
		shop.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
			if state == http.StateClosed {
				hungUp <- struct{}{}
			}
		}
		shop.Start()
		t.Cleanup(shop.Close)
		return shop.URL
	}
	first := serve(func(http.ResponseWriter, *http.Request) {})
	second := serve(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hungUp:
		case <-r.Context().Done():
		}
	})
	conns := shopclient.NewBuyer(10 * time.Second)
	for _, url := range []string{first, first, second} {
		if err := shopclient.New(url, conns).Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	conns.CloseIdleConnections()
	<-hungUp
	if opened := opened.Load(); opened != 2 {
		t.Errorf("got %d connections, want 2", opened)
	}
}
