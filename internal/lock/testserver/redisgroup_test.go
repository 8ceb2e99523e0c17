package testserver_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock/testserver"
)

func TestStartRedisCluster(t *testing.T) {
	t.Parallel()
	addrs := testserver.StartRedisCluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs[:1]})
	defer func() { _ = rdb.Close() }()
	for _, key := range []string{"a", "b", "c", "d"} { // in slots of all three masters
		if err := rdb.Set(t.Context(), key, "v", 0).Err(); err != nil {
			t.Errorf("SET %s: %v", key, err)
		}
	}
	replica := redis.NewClient(&redis.Options{Addr: addrs[3]})
	defer func() { _ = replica.Close() }()
	testserver.KillProcess(t, addrs[0])
	if err := replica.Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err(); err != nil {
		t.Fatal(err)
	}
	if role := replica.Do(t.Context(), "ROLE").Val().([]any)[0]; role != "master" {
		t.Errorf("got role %v after the takeover, want master", role)
	}
}

func TestStartRedisSentinel(t *testing.T) {
	t.Parallel()
	master, sentinels := testserver.StartRedisSentinel(t)
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: testserver.SentinelName, SentinelAddrs: sentinels})
	defer func() { _ = rdb.Close() }()
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	testserver.KillSentinelMaster(t, master, sentinels)
	for t.Context().Err() == nil {
		if rdb.Set(t.Context(), "k", "w", 0).Err() == nil {
			return // the new master
		}
	}
}

// The kinds of one server that speak Redis's protocol.
func TestRedis_Kinds(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB) string{
		"8": testserver.Redis, "7": testserver.Redis7, "valkey": testserver.Valkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{Addr: server(t)})
			defer func() { _ = rdb.Close() }()
			if err := rdb.Ping(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
