package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/loadtest/popularity"
)

const patience = 30 * time.Second

// fake is a shop that answers the n-th order as told.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	n     int
	names map[string]int // of buyers and keys
}

func newFake(t *testing.T, answer func(n int, w http.ResponseWriter)) *fake {
	t.Helper()
	f := &fake{names: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/orders", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.n++
		n := f.n
		f.names[r.Header.Get("Shop-Buyer")+" "+r.Header.Get("Idempotency-Key")]++
		f.mu.Unlock()
		answer(n, w)
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) load(buyers int) Load {
	return Load{
		Shops: []string{strings.TrimPrefix(f.URL, "http://")}, Buyers: buyers,
		Pick: popularity.Only("mug"), Name: "t", Patience: patience,
	}
}

// "under a name and an idempotency key that were never used"
func TestLoad_Loop(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(n int, w http.ResponseWriter) {
		switch n % 4 {
		case 0:
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"type":"/problems/sold-out"}`)
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"title":"busy"}`)
		case 2:
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
	got, err := f.load(4).Loop(t.Context(), 20*time.Millisecond, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if all := got.Orders + got.Refusals + got.Errors; all != int64(f.n) || got.Orders == 0 || got.Refusals == 0 {
		t.Errorf("got %+v of %d requests, want all of them", got, f.n)
	}
	if got.Unknown == 0 || got.Unknown >= got.Errors || got.First == nil {
		t.Errorf("got %+v, want the 503 to be unknown, the 429 not", got)
	}
	if got.P50 <= 0 || got.P99 < got.P50 || got.Longest < got.P99 {
		t.Errorf("got p50 %v, p99 %v, longest %v", got.P50, got.P99, got.Longest)
	}
	for name, times := range f.names {
		if buyer, key, _ := strings.Cut(name, " "); times != 1 || buyer == "" || key == "" {
			t.Errorf("%q was used %d times, want once", name, times)
		}
	}
}

// All orders are there before the first one is answered.
func TestLoad_Once(t *testing.T) {
	t.Parallel()
	const buyers = 200
	var all sync.WaitGroup
	all.Add(buyers)
	f := newFake(t, func(_ int, w http.ResponseWriter) {
		all.Done()
		all.Wait()
		w.WriteHeader(http.StatusCreated)
	})
	got, err := f.load(buyers).Once(t.Context())
	if err != nil || got.Orders != buyers || got.Errors != 0 || got.OrdersPerSecond <= 0 {
		t.Errorf("got %+v, %v, want %d orders", got, err, buyers)
	}
}

// A lost connection is an unknown outcome and is dialled again.
func TestLoad_lostConnection(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
	})
	got, err := f.load(1).Loop(t.Context(), 0, 500*time.Millisecond)
	if err != nil || got.Errors != 1 || got.Unknown != 1 || got.Orders == 0 {
		t.Errorf("got %+v, %v, want one unknown outcome, and orders", got, err)
	}
}

func TestLoad_cancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	f := newFake(t, func(int, http.ResponseWriter) {
		cancel()
		<-release
	})
	t.Cleanup(func() { close(release) }) // before the server's own, which waits for handlers
	if got, err := f.load(3).Once(ctx); !errors.Is(err, context.Canceled) || got.Errors != 0 {
		t.Errorf("got %+v, %v, want %v", got, err, context.Canceled)
	}
}

func TestLoad_noShop(t *testing.T) {
	t.Parallel()
	l := Load{Shops: []string{"127.0.0.1:1"}, Buyers: 1, Pick: popularity.Only("mug"), Name: "t", Patience: patience}
	if _, err := l.Once(t.Context()); err == nil {
		t.Error("got no error")
	}
}
