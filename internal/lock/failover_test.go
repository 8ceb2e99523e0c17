package lock_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/testserver"
)

// Masters of a cluster die. Those that Sentinels replace are for go run ./loadtest faults redis-failover.
func TestCluster(t *testing.T) { //nolint:tparallel // one after the other: the last one breaks what they use
	t.Parallel()
	nodes := testserver.Start(t, testserver.OpenRedisCluster)
	t.Run("SlotMigrates", func(t *testing.T) { slotMigrates(t, nodes) })
	t.Run("MasterDies", func(t *testing.T) { masterDies(t, nodes) })
}

// keyOn returns a key that a master of the cluster keeps.
func keyOn(t *testing.T, client *redis.ClusterClient, master, name string) string {
	t.Helper()
	for i := 0; ; i++ {
		key := fmt.Sprint(name, i)
		server, err := client.MasterForKey(t.Context(), "lock:{"+key+"}")
		testserver.Must(t, err)
		if server.Options().Addr == master {
			return key
		}
	}
}

// slotMigrates: "In a Cluster, a request names one key unless a caller has to wait, so that a slot that migrates fails
// nothing": a key that is held, a key that no client has used, and callers that wait, while some keys of the slot have moved
// and others have not.
func slotMigrates(t *testing.T, nodes *testserver.RedisGroup) {
	source, dest, client := connect(t, nodes.Addrs[2]), connect(t, nodes.Addrs[0]), connectCluster(t, nodes.Addrs)
	key := keyOn(t, client, nodes.Addrs[2], "moved")
	slot := client.ClusterKeySlot(t.Context(), "{"+key+"}").Val()
	set := func(server *redis.Client, args ...any) {
		t.Helper()
		testserver.Must(t, server.Do(t.Context(), append([]any{"CLUSTER", "SETSLOT", slot}, args...)...).Err())
	}
	id := func(server *redis.Client) any { return server.Do(t.Context(), "CLUSTER", "MYID").Val() }

	tap := locktest.NewTap(lock.NewRedis(connectCluster(t, nodes.Addrs)))
	waiter := newLocker(t, tap, lock.Options{TTL: time.Second})
	locker := newLocker(t, lock.NewRedis(client), lock.Options{TTL: time.Second})
	lease := mustAcquire(t, locker, key)
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), key, nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))

	set(dest, "IMPORTING", id(source))
	set(source, "MIGRATING", id(dest))
	host, port, _ := net.SplitHostPort(nodes.Addrs[0])
	// Its queue stays where it was.
	testserver.Must(t, source.Do(t.Context(), "MIGRATE", host, port, "lock:{"+key+"}", 0, 5000).Err())
	mustPass(t, lease, served)
	for range 3 {
		if err := locker.Do(t.Context(), key, nothing); err != nil && !paused(err) {
			t.Errorf("Do: %v", err)
		}
	}
	fresh := strings.Repeat("f", 9)
	for i := 0; client.ClusterKeySlot(t.Context(), fresh).Val() != slot; i++ {
		fresh = fmt.Sprint("fresh", i)
	}
	lease = mustAcquire(t, locker, fresh)
	go func() { served <- waiter.Do(t.Context(), fresh, nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, tap.Count(locktest.Wait)+1))
	mustPass(t, lease, served)

	set(source, "STABLE") // as it was: what has moved is not missed
	set(dest, "STABLE")
}

// masterDies: a lease that the new master knows of goes on. "After a failover the new primary may not know of a lease, and
// grant the key again while its first holder still trusts it; the fence covers that as well."
func masterDies(t *testing.T, nodes *testserver.RedisGroup) {
	master, replica, client := nodes.Addrs[0], connect(t, nodes.Addrs[3]), connectCluster(t, nodes.Addrs)
	const ttl, limit = time.Minute, 30 * time.Second // until the clients have found the new master
	holder := newLocker(t, lock.NewRedis(client), lock.Options{TTL: ttl})
	other := newLocker(t, lock.NewRedis(connectCluster(t, nodes.Addrs)), lock.Options{TTL: ttl})
	known := mustAcquire(t, holder, keyOn(t, client, master, "known"))
	unknown := mustAcquire(t, holder, keyOn(t, client, master, "unknown"))
	for _, lease := range []*lock.Lease{known, unknown} {
		testserver.Until(t, "the replica knows of the lease", limit, func() bool {
			keys, err := replica.Keys(t.Context(), "lock:{"+lease.Key()+"}").Result()
			return err == nil && len(keys) == 1
		})
	}

	testserver.Must(t, nodes.KillNode(t.Context(), master))
	testserver.Must(t, replica.Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err())
	testserver.Must(t, replica.Del(t.Context(), "lock:{"+unknown.Key()+"}").Err())
	var next *lock.Lease
	testserver.Until(t, "the key is granted again", limit, func() bool {
		next, _ = other.TryAcquire(t.Context(), unknown.Key())
		return next != nil
	})
	if unknown.Remaining() == 0 || next.Fence() <= unknown.Fence() {
		t.Errorf("fence %d after %d, which is trusted for %v", next.Fence(), unknown.Fence(), unknown.Remaining())
	}
	if _, err := other.TryAcquire(t.Context(), known.Key()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("TryAcquire of a key that is held: %v, want ErrHeld", err)
	}
	testserver.Until(t, "the holder finds the new master", limit, func() bool {
		_, err := holder.Holder(t.Context(), known.Key())
		return err == nil
	})
	mustRelease(t, known)
	if err := unknown.Release(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
	mustRelease(t, next)
}
