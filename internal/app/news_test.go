package app

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/logs/logbook"
)

// hearer writes down what it hears.
type hearer struct {
	mu    sync.Mutex
	hears bool
	heard []string
	log   logbook.Book
}

func (h *hearer) Hears(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hears = on
}

func (h *hearer) Heard(skus ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, skus...)
}

func (h *hearer) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		done := is()
		h.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within 30s: %s; heard %v", what, h.heard)
		}
	}
}

// newsroom starts the news of an instance.
func newsroom(t *testing.T, addr string) (*news, *hearer) {
	t.Helper()
	h := &hearer{}
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	n := newNews(client, slog.New(slog.NewTextHandler(&h.log, nil)))
	n.ping = 200 * time.Millisecond
	n.start(h)
	t.Cleanup(func() {
		n.close()
		_ = client.Close()
	})
	h.await(t, "it hears", func() bool { return h.hears })
	return n, h
}

// What one instance tells, the others hear, also the last that it tells.
func TestNews(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"embedded": miniredis.RunT(t).Addr(), "Redis": testserver.Redis(t), "Valkey": testserver.Valkey(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			teller, _ := newsroom(t, addr)
			_, other := newsroom(t, addr)
			teller.tell("mug", "hat")
			other.await(t, "mug and hat", func() bool { return slices.Contains(other.heard, "mug") && slices.Contains(other.heard, "hat") })
			for range 100 {
				teller.tell("cup")
			}
			teller.tell("last")
			teller.close()
			other.await(t, "the last", func() bool { return slices.Contains(other.heard, "last") })
			if n := len(other.heard); n > 100 {
				t.Errorf("heard %d times, want the same news together", n)
			}
		})
	}
}

// A subscription that is lost, or silent because Redis is frozen, is known to be
// lost, and there is a new one when Redis is back. Each outage is told once.
func TestNews_lost(t *testing.T) {
	t.Parallel()
	frozen := testserver.StartRedis(t)
	gone := miniredis.RunT(t)
	goneAddr := gone.Addr()
	for name, c := range map[string]struct {
		addr       string
		away, back func()
	}{
		"frozen": {frozen.Addr(), func() { frozen.Pause(t) }, func() { frozen.Unpause(t) }},
		"gone": {goneAddr, gone.Close, func() {
			if err := gone.StartAddr(goneAddr); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			teller, _ := newsroom(t, c.addr)
			_, other := newsroom(t, c.addr)
			c.away()
			other.await(t, "the loss", func() bool { return !other.hears })
			other.await(t, "a warning", func() bool { return other.log.Has("it is not heard") })
			c.back()
			other.await(t, "it hears again", func() bool { return other.hears })
			teller.tell("mug")
			other.await(t, "mug", func() bool { return slices.Contains(other.heard, "mug") })
			if n := strings.Count(other.log.String(), "it is not heard"); n != 1 {
				t.Errorf("told %d times:\n%s", n, other.log.String())
			}
		})
	}
}
