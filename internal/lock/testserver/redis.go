package testserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis returns the host:port of a Redis that the tests of this package share. Keys and channels are shared with it: a
// test uses names of its own, and nobody calls FLUSHALL.
func Redis(t testing.TB) (addr string) {
	t.Helper()
	return pool.shared(t, redisKind()).addr
}

func redisVersion(ctx context.Context, addr string) (string, error) {
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second,
		DialerRetries: 1, // the default waits 0.4 s over a refused connection
	})
	defer func() { _ = rdb.Close() }()
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			return version, nil
		}
	}
	return "", errors.New("INFO server tells no redis_version")
}
