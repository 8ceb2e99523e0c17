package testserver

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go/exec"
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
	return own(t, redisKind())
}

// Exec runs a shell command in the container.
func (s *Server) Exec(t testing.TB, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), faultLimit)
	defer cancel()
	code, _, err := s.container.Exec(ctx, []string{"sh", "-c", command}, exec.Multiplexed())
	if err != nil || code != 0 {
		t.Fatalf("testserver: %s: code %d, %v", command, code, err)
	}
}

func redisKind() kind {
	return kind{
		name:     "Redis",
		variable: "SHOP_TEST_REDIS_IMAGE",
		image:    "redis:8",
		port:     6379,
		command:  []string{"redis-server", "--save", "", "--appendonly", "no"},
		memory:   "/data",
		ready: func(ctx context.Context, addr string) error {
			rdb := redis.NewClient(&redis.Options{
				Addr: addr, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second,
				DialerRetries: 1, // the default waits 0.4 s over a refused connection
			})
			defer func() { _ = rdb.Close() }()
			return rdb.Ping(ctx).Err()
		},
	}
}
