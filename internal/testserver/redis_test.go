package testserver_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/testserver"
)

// A master that is lost with what its replicas had not received is replaced, again and again.
func TestRedisSentinel(t *testing.T) {
	t.Parallel()
	g := testserver.Start(t, testserver.OpenRedisSentinel)
	options := &redis.FailoverOptions{MasterName: testserver.SentinelMaster, SentinelAddrs: g.Addrs[3:], MaxRetries: 20}
	for range 2 {
		rdb := redis.NewFailoverClient(options)
		testserver.Must(t, rdb.Set(t.Context(), "known", 1, 0).Err())
		testserver.Must(t, rdb.Do(t.Context(), "WAIT", 2, 10_000).Err())
		testserver.Must(t, g.CutReplicas(t.Context()))
		testserver.Must(t, rdb.Set(t.Context(), "unknown", 1, 0).Err())
		testserver.Must(t, g.FailOver(t.Context()))
		testserver.Must(t, rdb.Close())
		rdb = redis.NewFailoverClient(options)
		if n, err := rdb.Exists(t.Context(), "known", "unknown").Result(); n != 1 || err != nil {
			t.Errorf("the new master has %d of the keys, %v, want the one from before it was cut off", n, err)
		}
		testserver.Must(t, rdb.Close())
		testserver.Must(t, g.Restore(t.Context()))
	}
}
