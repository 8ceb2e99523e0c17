// Package suite is what a changed package lock has to fail, beside locksim.
package suite

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
)

func TestMemory(t *testing.T) {
	locktest.Run(t, func(*testing.T) locktest.Harness {
		store := lock.NewMemory()
		return harness(func(testing.TB) lock.Backend { return store })
	})
}

func TestRedis(t *testing.T) {
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		h := harness(func(t testing.TB) lock.Backend {
			client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
			t.Cleanup(func() { _ = client.Close() })
			return lock.NewRedis(client)
		})
		h.Forget = func(testing.TB) { server.FlushAll() }
		return h
	})
}

func harness(connect func(testing.TB) lock.Backend) locktest.Harness {
	return locktest.Harness{
		Connect:         connect,
		Expires:         true,
		Notifies:        true,
		Fences:          true,
		Raises:          true,
		FirstInFirstOut: true,
	}
}
