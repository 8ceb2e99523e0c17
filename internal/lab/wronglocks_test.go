package lab

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
)

const ttl = 10 * time.Second

// buyer is one process: a client of its own, which calls before, if it is set, ahead of each command.
type buyer struct {
	wrongLock
	before func()
}

// buyers share a Redis.
func buyers(t *testing.T, name string, n int) ([]*buyer, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	all := make([]*buyer, n)
	for i := range all {
		b := &buyer{}
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
		t.Cleanup(func() { _ = client.Close() })
		client.AddHook(b)
		b.wrongLock = WrongLocks(client, LockOptions{TTL: ttl, MaxWait: 30 * time.Second})[name].(wrongLock)
		all[i] = b
	}
	return all, server
}

func (b *buyer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *buyer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *buyer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		if b.before != nil {
			b.before()
		}
		return next(ctx, c)
	}
}

// lock takes the lock, which must be free.
func (b *buyer) lock(t *testing.T) (unlock func()) {
	t.Helper()
	leases, err := b.AcquireAll(t.Context(), "mug")
	if err != nil {
		t.Fatalf("lock: %v", err)
	}
	return func() { _ = leases.Release() }
}

// "Each by one well-known mistake and right in everything else": where nothing goes wrong in between, all but setex
// exclude, waiters included.
func TestWrongLocks_excludeUntilSomethingGoesWrong(t *testing.T) {
	t.Parallel()
	for name := range WrongLocks(nil, LockOptions{}) {
		if name == "setex" || name == "try-once" { // the first lets all in, the second has no waiters
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, server := buyers(t, name, 2)
			unlock := all[0].lock(t)
			tried := make(chan struct{})
			all[1].before = func() {
				select {
				case tried <- struct{}{}:
				default:
				}
			}
			entered := make(chan func())
			go func() { entered <- all[1].lock(t) }()
			for range 2 {
				<-tried
			}
			select {
			case <-entered:
				t.Error("two holders")
			default:
			}
			unlock()
			(<-entered)()
			if keys := server.Keys(); len(keys) > 0 {
				t.Errorf("left behind: %s", strings.Join(keys, ", "))
			}
		})
	}
}

// try-once: "it is asked for once".
func TestWrongLocks_tryOnce(t *testing.T) {
	t.Parallel()
	all, _ := buyers(t, "try-once", 2)
	unlock := all[0].lock(t)
	if _, err := all[1].AcquireAll(t.Context(), "mug"); !errors.Is(err, lock.ErrNotAcquired) || !errors.Is(err, lock.ErrTimeout) {
		t.Errorf("got %v, want ErrNotAcquired and ErrTimeout", err)
	}
	unlock()
	all[1].lock(t)()
}

// "Until it is taken, ctx ends, or LockOptions.MaxWait has passed."
func TestWrongLocks_waits(t *testing.T) {
	t.Parallel()
	all, _ := buyers(t, "short-lease", 2)
	defer all[0].lock(t)()
	ctx, cancel := context.WithCancel(t.Context())
	all[1].before = func() { cancel() }
	_, err := all[1].AcquireAll(ctx, "mug")
	if !errors.Is(err, lock.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrNotAcquired and context.Canceled", err)
	}
	all[1].before, all[1].maxWait = nil, time.Millisecond
	if _, err := all[1].AcquireAll(t.Context(), "mug"); !errors.Is(err, lock.ErrTimeout) {
		t.Errorf("got %v, want ErrTimeout", err)
	}
}
