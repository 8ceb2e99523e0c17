package testserver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed redissentinel.sh
var sentinelScript string

// SentinelName is what the Sentinels of StartRedisSentinel call the master.
const SentinelName = "main"

// StartRedisSentinel starts, for this test alone, a Redis master with two replicas and three Sentinels, which replace a
// master that has been silent for half a minute, or sooner with KillSentinelMaster. It returns when each Sentinel knows all
// others.
func StartRedisSentinel(t testing.TB) (master string, sentinels []string) {
	t.Helper()
	addrs := startGroup(t, "Redis Sentinel", sentinelScript, 6)
	for _, addr := range addrs[3:] {
		// One whose timer is two seconds late, as on a busy machine, would replace no master for the next 30 seconds.
		sentinelDo(t, addr, "DEBUG", "tilt-trigger", 60_000)
	}
	for _, addr := range addrs[3:] {
		eventually(t, "Sentinel at "+addr, func(ctx context.Context) error { return sentinelReady(ctx, addr) })
	}
	return addrs[0], addrs[3:]
}

// KillSentinelMaster ends the master of StartRedisSentinel by KillProcess, and lets the Sentinels replace one that has been
// silent for a second until each of them names another. At all other times a pause of the machine is no death.
func KillSentinelMaster(t testing.TB, master string, sentinels []string) {
	t.Helper()
	KillProcess(t, master)
	setDownAfter(t, sentinels, time.Second)
	for _, addr := range sentinels {
		eventually(t, "failover at "+addr, func(ctx context.Context) error { return masterReplaced(ctx, addr, master) })
	}
	setDownAfter(t, sentinels, 30*time.Second) // as in the script
}

func setDownAfter(t testing.TB, sentinels []string, d time.Duration) {
	t.Helper()
	for _, addr := range sentinels {
		sentinelDo(t, addr, "SET", SentinelName, "down-after-milliseconds", d.Milliseconds())
	}
}

func sentinelDo(t testing.TB, addr string, command ...any) {
	t.Helper()
	eventually(t, fmt.Sprintf("SENTINEL %v at %s", command[0], addr), func(ctx context.Context) error {
		return withRedis(addr, func(rdb *redis.Client) error {
			return rdb.Do(ctx, append([]any{"SENTINEL"}, command...)...).Err()
		})
	})
}

func masterReplaced(ctx context.Context, sentinel, old string) error {
	return withRedis(sentinel, func(rdb *redis.Client) error {
		master, err := rdb.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelName).StringSlice()
		if err == nil && net.JoinHostPort(master[0], master[1]) == old {
			err = errors.New("the dead master is still the one")
		}
		return err
	})
}

func sentinelReady(ctx context.Context, addr string) error {
	return withRedis(addr, func(rdb *redis.Client) error {
		info, err := rdb.Info(ctx, "sentinel").Result()
		if err != nil {
			return err
		}
		if tilt := field(info, "sentinel_tilt"); tilt != "0" { // late before it was told otherwise
			return fmt.Errorf("sentinel_tilt is %q, want 0", tilt)
		}
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
