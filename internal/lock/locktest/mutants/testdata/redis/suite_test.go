// Package redis is what a changed lock.Redis has to fail.
package redis

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
)

func TestRedis(t *testing.T) {
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		return locktest.Harness{
			Connect: func(t testing.TB) lock.Backend {
				client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
				t.Cleanup(func() { _ = client.Close() })
				return lock.NewRedis(client)
			},
			Expires: true, Notifies: true, Fences: true,
			Forget: func(testing.TB) { server.FlushAll() },
		}
	})
}
