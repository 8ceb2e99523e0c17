package testserver

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

//go:embed rediscluster.sh
var clusterScript string

const (
	clusterMasters = 3
	clusterNodes   = 2 * clusterMasters
	clusterSlots   = 16384
)

// StartRedisCluster starts a Redis Cluster for this test alone, and returns when all of it works. The first three nodes
// are masters of a third of the slots each; the other three are their replicas, in the same order.
func StartRedisCluster(t testing.TB) (addrs []string) {
	t.Helper()
	addrs = startGroup(t, "Redis Cluster", clusterScript, clusterNodes)
	ids := make([]string, clusterNodes)
	for i, addr := range addrs {
		eventually(t, "node at "+addr, func(ctx context.Context) (err error) {
			ids[i], err = introduce(ctx, i, addrs)
			return err
		})
	}
	for i, addr := range addrs {
		eventually(t, "replication to "+addr, func(ctx context.Context) error {
			return withRedis(addr, func(rdb *redis.Client) error {
				if i < clusterMasters {
					return nil
				}
				return rdb.ClusterReplicate(ctx, ids[i-clusterMasters]).Err() // refused until the two have met
			})
		})
	}
	for i, addr := range addrs {
		eventually(t, "cluster at "+addr, func(ctx context.Context) error { return nodeReady(ctx, i, addrs) })
	}
	return addrs
}

// introduce gives a new node its slots and its epoch, lets it meet those before it, and returns its id.
func introduce(ctx context.Context, i int, addrs []string) (id string, err error) {
	err = withRedis(addrs[i], func(rdb *redis.Client) error {
		if id, err = rdb.Do(ctx, "CLUSTER", "MYID").Text(); err != nil {
			return err
		}
		if i < clusterMasters {
			first, end := clusterSlots*i/clusterMasters, clusterSlots*(i+1)/clusterMasters
			if err := rdb.ClusterAddSlotsRange(ctx, first, end-1).Err(); err != nil {
				return err
			}
		}
		// Epochs that differ from the beginning need not be sorted out by collisions.
		if err := rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
		for j, addr := range addrs[:i] {
			host, port, _ := strings.Cut(addr, ":")
			if err := rdb.Do(ctx, "CLUSTER", "MEET", host, port, busPort(j)).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return id, err
}

// busPort is that of rediscluster.sh.
func busPort(i int) int { return 11001 + i }

// expectation is a line of INFO or CLUSTER INFO.
type expectation struct{ in, field, value string }

func nodeReady(ctx context.Context, i int, addrs []string) error {
	return withRedis(addrs[i], func(rdb *redis.Client) error {
		info, err := rdb.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		replication, err := rdb.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		for _, want := range []expectation{
			{info, "cluster_state", "ok"},
			{info, "cluster_slots_ok", fmt.Sprint(clusterSlots)},
			{info, "cluster_known_nodes", fmt.Sprint(clusterNodes)},
			{info, "cluster_size", fmt.Sprint(clusterMasters)},
			linked(i, replication),
		} {
			if got := field(want.in, want.field); got != want.value {
				return fmt.Errorf("%s is %q, want %q", want.field, got, want.value)
			}
		}
		return nil
	})
}

// linked is what a node tells when its master or replica is connected to it.
func linked(i int, info string) expectation {
	if i < clusterMasters {
		return expectation{info, "connected_slaves", "1"}
	}
	return expectation{info, "master_link_status", "up"}
}
