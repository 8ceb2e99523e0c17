package orderhttp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/order/orderhttp"
)

// askers ask for /readyz of a shop that has one check and is otherwise hollow.
type askers struct {
	handler http.Handler
	log     bytes.Buffer // at level info
	wait    sync.WaitGroup

	mu       sync.Mutex
	asked    int         // how often the check was made
	statuses map[int]int // how many got which
}

// checkedBy returns those whose shop is ready if ping says so.
func checkedBy(t *testing.T, ping func(context.Context) error) *askers {
	t.Helper()
	c := &askers{statuses: map[int]int{}}
	handler, err := orderhttp.New(orderhttp.Config{
		Orders: broken{}, Stock: struct{ orderhttp.Stock }{}, Auditor: struct{ orderhttp.Auditor }{},
		Log: slog.New(slog.NewTextHandler(&c.log, nil)), Timeout: 30 * time.Second,
		Checks: []orderhttp.Check{{Name: "database", Ping: func(ctx context.Context) error {
			c.mu.Lock()
			c.asked++
			c.mu.Unlock()
			return ping(ctx)
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.handler = handler
	return c
}

// comes lets n ask at once, and returns when all of them wait or have their answer.
func (c *askers) comes(ctx context.Context, n int) {
	for range n {
		c.wait.Go(func() {
			w := httptest.NewRecorder()
			c.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
			c.mu.Lock()
			defer c.mu.Unlock()
			c.statuses[w.Code]++
		})
	}
	synctest.Wait()
}

// want fails unless the check was made so often, so many were told that the shop is
// ready and so many that it is not, and nothing was logged.
func (c *askers) want(t *testing.T, when string, asked, ready, unready int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked != asked || c.statuses[http.StatusOK] != ready || c.statuses[http.StatusServiceUnavailable] != unready {
		t.Errorf("%s: got %d checks and statuses %v, want %d checks, %d times 200 and %d times 503", when, c.asked, c.statuses, asked, ready, unready)
	}
	if c.log.Len() > 0 {
		t.Errorf("%s: got log %s, want none of this", when, &c.log)
	}
}

// "However many ask it, the checks run in one round at a time and one in a second,
// whose outcome all share."
func TestReadyz_shared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan error)
		c := checkedBy(t, func(context.Context) error { return <-answer })
		c.comes(t.Context(), 1000)
		c.want(t, "nobody has an answer", 1, 0, 0)
		answer <- nil
		c.wait.Wait()
		c.want(t, "all share it", 1, 1000, 0)
		c.comes(t.Context(), 1000)
		c.want(t, "it is good for a second", 1, 2000, 0)
		time.Sleep(time.Second)
		c.comes(t.Context(), 1000)
		c.want(t, "the next round", 2, 2000, 0)
		answer <- errors.New("connection refused")
		c.wait.Wait()
		c.want(t, "all share what is bad", 2, 2000, 1000)
		c.comes(t.Context(), 1000)
		c.want(t, "that, too, is good for a second", 2, 2000, 2000)
	})
}

// "Who finds no round to share runs one, and to its end even if their client goes away:
// others wait for it."
func TestReadyz_firstGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan error)
		c := checkedBy(t, func(ctx context.Context) error {
			select {
			case err := <-answer:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ctx, leave := context.WithCancel(t.Context())
		c.comes(ctx, 1)
		c.comes(t.Context(), 9)
		leave()
		synctest.Wait()
		c.want(t, "the first has left", 1, 0, 0)
		answer <- nil
		c.wait.Wait()
		if got := c.statuses[http.StatusOK]; got < 9 { // nobody cares what the first is told
			t.Errorf("got %d that were told that it is ready, want the 9 who stayed", got)
		}
	})
}

// Every wait has an end: that of the checks comes after two seconds, and who leaves
// before does not wait for them.
func TestReadyz_bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := checkedBy(t, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		began := time.Now()
		c.comes(t.Context(), 10)
		ctx, leave := context.WithCancel(t.Context())
		c.comes(ctx, 10)
		leave()
		synctest.Wait()
		c.want(t, "ten have left", 1, 0, 10)
		c.wait.Wait()
		c.want(t, "no server answers", 1, 0, 20)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v, want 2s", took)
		}
	})
}
