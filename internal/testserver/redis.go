package testserver

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis returns the host:port of a Redis that the tests of this package share. Keys and channels are shared with it: a
// test uses names of its own, and no FLUSHALL.
func Redis(t testing.TB) (addr string) {
	t.Helper()
	return share(t, redisKind()).addr
}

// Redis7 is Redis on one of version 7.
func Redis7(t testing.TB) (addr string) {
	t.Helper()
	k := redisKind()
	k.name, k.variable, k.image = "Redis 7", "SHOP_TEST_REDIS7_IMAGE", "redis:7"
	return share(t, k).addr
}

// Valkey is Redis on a Valkey 9.
func Valkey(t testing.TB) (addr string) {
	t.Helper()
	k := redisKind()
	k.name, k.variable, k.image = "Valkey", "SHOP_TEST_VALKEY_IMAGE", "valkey/valkey:9"
	k.command[0] = "valkey-server"
	return share(t, k).addr
}

// StartRedis starts a Redis for this test alone, for faults. It keeps its data in memory: a killed one starts empty.
func StartRedis(t testing.TB) *Server {
	t.Helper()
	return own(t, redisKind(), redisKind().start)
}

func redisKind() kind {
	return kind{
		name:     "Redis",
		variable: "SHOP_TEST_REDIS_IMAGE",
		image:    "redis:8",
		port:     6379,
		command:  []string{"redis-server", "--save", "", "--appendonly", "no"},
		memory:   "/data",
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
