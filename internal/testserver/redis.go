package testserver

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis returns the host:port of a Redis that the tests of this package share. Keys and channels are shared with it: a
// test uses names of its own, and no FLUSHALL.
func Redis(t testing.TB) (addr string) { return share(t, redisKind()).addr }

// RedisLike is Redis on another version or program. The variable names another image.
func RedisLike(t testing.TB, name, variable, image, program string) (addr string) {
	t.Helper()
	k := redisKind()
	k.name, k.variable, k.image, k.command[0] = name, variable, image, program
	return share(t, k).addr
}

func redisKind() kind {
	return kind{
		name:     "Redis",
		variable: "SHOP_TEST_REDIS_IMAGE",
		image:    "redis:8",
		port:     6379,
		command:  []string{"redis-server", "--save", "", "--appendonly", "no"},
		memory:   map[string]string{"/data": "rw"},
		ready:    func(ctx context.Context, addr string) error { return askRedis(ctx, addr, "PING").Err() },
	}
}

// askRedis sends a command to a server.
func askRedis(ctx context.Context, addr string, command ...any) *redis.Cmd {
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: askLimit,
		DialerRetries: 1, // the default waits 0.4 s over a refused connection
	})
	defer func() { _ = rdb.Close() }()
	return rdb.Do(ctx, command...)
}
