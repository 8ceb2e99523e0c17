package lock_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

func connect(t testing.TB, addr string) *redis.Client {
	t.Helper()
	return closing(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}))
}

// connectCluster has options that are go-redis's own.
func connectCluster(t testing.TB, addrs []string) *redis.ClusterClient {
	t.Helper()
	return closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true}))
}

func closing[C redis.UniversalClient](t testing.TB, client C) C {
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	return client
}

func mustAcquire(t testing.TB, l *lock.Locker, key string) *lock.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func mustRelease(t testing.TB, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// flush makes every master forget everything.
func flush(t testing.TB, client redis.UniversalClient) {
	t.Helper()
	flush := func(ctx context.Context, server *redis.Client) error { return server.FlushAll(ctx).Err() }
	var err error
	switch client := client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(t.Context(), flush)
	case *redis.Client:
		err = flush(t.Context(), client)
	}
	if err != nil {
		t.Fatalf("FLUSHALL: %v", err)
	}
}
