package processes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
)

// stores are what a child may lock with: the one that all share, and two that
// make mistakes which have to be noticed. The function frees what it opened.
var stores = map[string]func(addr string) (lock.Backend, func() error){
	"redis": newRedis,
	"a memory of its own": func(string) (lock.Backend, func() error) {
		return lock.NewMemory(), func() error { return nil }
	},
	"fences of its own": func(addr string) (lock.Backend, func() error) {
		b, done := newRedis(addr)
		return &counting{Backend: b}, done
	},
}

func newRedis(addr string) (lock.Backend, func() error) {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	return lock.NewRedis(client), client.Close
}

// counting numbers grants by itself. It leaves room for hand-offs.
type counting struct {
	lock.Backend
	last atomic.Int64
}

func (b *counting) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	g, err := b.Backend.Acquire(ctx, c)
	if g.Fence != 0 {
		g.Fence = b.last.Add(1 << 16)
	}
	return g, err
}

// grants remembers when the request was sent by which this process has a key:
// that of the first of the leases that are handed over.
type grants struct {
	lock.Backend

	mu   sync.Mutex
	sent map[string]time.Time // by key
}

func (b *grants) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	sent := clock()
	g, err := b.Backend.Acquire(ctx, c)
	if err == nil && !g.Held {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sent[c.Key] = sent
	}
	return g, err
}

func (b *grants) of(key string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent[key]
}
