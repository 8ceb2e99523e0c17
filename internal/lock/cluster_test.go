package lock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/lock/testserver"
)

func TestCluster(t *testing.T) { //nolint:tparallel // one after the other: the last ones break what they use
	t.Parallel()
	nodes := testserver.StartRedisCluster(t)
	t.Run("KeysInDifferentSlots", func(t *testing.T) { clusterAcquireAll(t, nodes) })
	t.Run("WokenFromAnyNode", func(t *testing.T) { clusterWake(t, nodes) })
	t.Run("ListenedServerDies", func(t *testing.T) { clusterListenedDies(t, nodes) })
	t.Run("MasterDies", func(t *testing.T) { masterDies(t, shard(t, nodes, 0)) })
	t.Run("MasterDiesAhead", func(t *testing.T) { masterDiesAhead(t, shard(t, nodes, 1)) })
}

// keysOn returns for each node that is a master a key that is kept there.
func keysOn(t *testing.T, client *redis.ClusterClient, nodes []string) (keys []string) {
	t.Helper()
	for _, node := range nodes {
		for i := 0; ; i++ {
			key := fmt.Sprintf("%s/%d", t.Name(), i)
			master, err := client.MasterForKey(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if master.Options().Addr == node {
				keys = append(keys, key)
				break
			}
		}
	}
	return keys
}

// "The keys are taken in sorted order, so that two callers never wait for each
// other; in a cluster each may be in another slot."
func clusterAcquireAll(t *testing.T, nodes []string) {
	const lockers, goroutines, turns = 2, 3, 5
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	keys := keysOn(t, connectCluster(t, nodes), nodes[:3])
	var wg sync.WaitGroup
	count := 0 // guarded by the locks
	for i := range lockers {
		locker := newLocker(t, lock.NewRedis(connectCluster(t, nodes[i:])), lock.Options{})
		for range goroutines {
			wg.Go(func() {
				for range turns {
					mine := slices.Clone(keys)
					slices.Reverse(mine[i:])
					leases, err := locker.AcquireAll(ctx, mine...)
					if err != nil {
						t.Errorf("AcquireAll: %v", err)
						return
					}
					count++
					if err := leases.Release(); err != nil {
						t.Errorf("Release: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	if want := lockers * goroutines * turns; count != want {
		t.Errorf("%d turns, want %d", count, want)
	}
}

// "One who waits is woken by the release", whichever node keeps the key and
// whichever one its process listens to: a process listens to one of them, and is
// told of releases on all three.
func clusterWake(t *testing.T, nodes []string) {
	long := lock.Options{TTL: 5 * time.Minute} // nobody waits for its end
	tap := locktest.NewTap(lock.NewRedis(connectCluster(t, nodes)))
	waiter := newLocker(t, tap, long)
	holder := newLocker(t, lock.NewRedis(connectCluster(t, nodes[1:])), long)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, key := range keysOn(t, connectCluster(t, nodes), nodes[:3]) {
		lease, err := holder.Acquire(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		woken := make(chan error, 1)
		go func() { woken <- waiter.Do(ctx, key, nothing) }()
		await(t, "waiter", tap.Seen(locktest.Wait, i+1))
		asked := tap.Count(locktest.Acquire)
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
		if err := <-woken; err != nil {
			t.Fatalf("key on %s: %v", nodes[i], err)
		}
		if n := tap.Count(locktest.Acquire) - asked; n != 1 {
			t.Errorf("key on %s: asked %d times after the release, want 1", nodes[i], n)
		}
	}
}

// "a lost notification, a reconnect [...] delays and never hangs": the server dies
// that a waiter listens to, while the one that keeps its key lives on.
func clusterListenedDies(t *testing.T, nodes []string) {
	o := lock.Options{TTL: 20 * time.Second} // outlives a pause of the machine
	key := keysOn(t, connectCluster(t, nodes), nodes[:1])[0]
	lease, err := newLocker(t, lock.NewRedis(connectCluster(t, nodes)), o).Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	doomed := connect(t, nodes[2])
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var waiters sync.WaitGroup
	defer func() { cancel(); waiters.Wait() }()
	for waits := false; !waits; waits = listened(t, doomed) { // a process listens to any of them
		tap := locktest.NewTap(lock.NewRedis(connectCluster(t, nodes)))
		locker := newLocker(t, tap, o)
		waiters.Go(func() {
			if err := locker.Do(ctx, key, nothing); err != nil {
				t.Errorf("Do: %v", err)
			}
		})
		await(t, "waiter", tap.Seen(locktest.Wait, 1))
	}
	shard(t, nodes, 2).kill(t)
	heir := connect(t, nodes[5])
	for began := time.Now(); !listened(t, heir); time.Sleep(10 * time.Millisecond) {
		if most := o.TTL + failoverTime; time.Since(began) > most { // TTL: who waits asks again
			t.Fatalf("nobody listens to the dead server's heir after %v", most)
		}
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	waiters.Wait()
}

// listened reports whether a process listens to the server for its calls.
func listened(t *testing.T, server *redis.Client) bool {
	t.Helper()
	channels, err := server.PubSubChannels(t.Context(), "lock:wake:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(channels) > 0
}

// shard is one master of the cluster with its replica, which takes over at once.
func shard(t *testing.T, nodes []string, i int) failover {
	t.Helper()
	return failover{
		ttl:      20 * time.Second,
		connect:  cluster(nodes),
		key:      keysOn(t, connectCluster(t, nodes), nodes[i:i+1])[0],
		master:   nodes[i],
		replicas: nodes[i+3 : i+4],
		kill: func(t *testing.T) {
			testserver.KillProcess(t, nodes[i])
			if err := connect(t, nodes[i+3]).Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err(); err != nil {
				t.Fatalf("TAKEOVER: %v", err)
			}
		},
	}
}
