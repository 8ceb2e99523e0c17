package testserver

import (
	"cmp"
	"context"
	"crypto/tls"
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

// Redis7 is Redis on one of version 7.
func Redis7(t testing.TB) (addr string) {
	t.Helper()
	return pool.shared(t, redis7Kind()).addr
}

// Valkey is Redis on a Valkey 9.
func Valkey(t testing.TB) (addr string) {
	t.Helper()
	return pool.shared(t, valkeyKind()).addr
}

func redisVersion(ctx context.Context, addr string) (version string, err error) {
	err = withRedis(addr, func(rdb *redis.Client) error {
		version, err = askVersion(ctx, rdb)
		return err
	})
	return version, err
}

func askVersion(ctx context.Context, rdb *redis.Client) (string, error) {
	info, err := rdb.Info(ctx, "server").Result()
	// What a Valkey tells as redis_version is the last Redis that it is compatible with.
	version := cmp.Or(field(info, "valkey_version"), field(info, "redis_version"))
	if err == nil && version == "" {
		err = errors.New("INFO server tells no version")
	}
	return version, err
}

// withRedis calls f with a client that neither repeats nor waits.
func withRedis(addr string, f func(*redis.Client) error) error {
	return withRedisTLS(addr, nil, f)
}

// withRedisTLS is withRedis for a server that speaks TLS; nil for one that does not.
func withRedisTLS(addr string, config *tls.Config, f func(*redis.Client) error) error {
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, TLSConfig: config, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second,
		DialerRetries: 1, // the default waits 0.4 s over a refused connection
	})
	defer func() { _ = rdb.Close() }()
	return f(rdb)
}

// field returns what INFO or CLUSTER INFO tells under a name, "" if nothing.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}
