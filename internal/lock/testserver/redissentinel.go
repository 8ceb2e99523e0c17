package testserver

import (
	"context"
	_ "embed"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

//go:embed redissentinel.sh
var sentinelScript string

// SentinelName is what the Sentinels of StartRedisSentinel call the master.
const SentinelName = "main"

// StartRedisSentinel starts, for this test alone, a Redis master with two replicas and three Sentinels, which replace a
// master that has been silent for a second. It returns when each Sentinel knows all others.
func StartRedisSentinel(t testing.TB) (master string, sentinels []string) {
	t.Helper()
	addrs := startGroup(t, "Redis Sentinel", sentinelScript, 6)
	for _, addr := range addrs[3:] {
		eventually(t, "Sentinel at "+addr, func(ctx context.Context) error { return sentinelReady(ctx, addr) })
	}
	return addrs[0], addrs[3:]
}

func sentinelReady(ctx context.Context, addr string) error {
	return withRedis(addr, func(rdb *redis.Client) error {
		cmd := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", SentinelName)
		if err := rdb.Process(ctx, cmd); err != nil {
			return err
		}
		m := cmd.Val()
		if m["flags"] != "master" || m["num-slaves"] != "2" || m["num-other-sentinels"] != "2" {
			return fmt.Errorf("flags %s, %s replicas, %s other Sentinels, want master, 2 and 2",
				m["flags"], m["num-slaves"], m["num-other-sentinels"])
		}
		return nil
	})
}
