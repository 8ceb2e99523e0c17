package lock_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/testserver"
)

const (
	failoverTTL  = 20 * time.Second // longer than it takes until there is a new master
	failoverTime = 15 * time.Second // for which a master is missed at most: until the clients have found the new one
)

// Masters of a cluster die. Those that Sentinels replace are for go run ./loadtest faults redis-failover.
func TestCluster(t *testing.T) { //nolint:tparallel // one after the other: the last ones break what they use
	t.Parallel()
	nodes := testserver.Start(t, testserver.OpenRedisCluster)
	t.Run("SlotMigrates", func(t *testing.T) { slotMigrates(t, newShard(t, nodes, 2), nodes.Addrs[0]) })
	t.Run("MasterDies", func(t *testing.T) { masterDies(t, newShard(t, nodes, 0)) })
}

// slotMigrates: "In a Cluster, a request names one key unless a caller has to wait, so that a slot that migrates fails
// nothing": a key that is held, a key that no client has used, and callers that wait, while some keys of the slot have moved
// and others have not.
func slotMigrates(t *testing.T, s shard, target string) {
	source, dest := connect(t, s.master), connect(t, target)
	client := connectCluster(t, s.cluster.Addrs)
	slot := client.ClusterKeySlot(t.Context(), "{"+s.key+"}").Val()
	set := func(server *redis.Client, args ...any) {
		t.Helper()
		if err := server.Do(t.Context(), append([]any{"CLUSTER", "SETSLOT", slot}, args...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	id := func(server *redis.Client) any { return server.Do(t.Context(), "CLUSTER", "MYID").Val() }

	tap := locktest.NewTap(lock.NewRedis(s.connect(t)))
	waiter := newLocker(t, tap, lock.Options{TTL: time.Second})
	locker := newLocker(t, lock.NewRedis(s.connect(t)), lock.Options{TTL: time.Second})
	lease := mustAcquire(t, locker, s.key)
	served := make(chan error, 1)
	go func() { served <- waiter.Do(t.Context(), s.key, nothing) }()
	await(t, "waiter", tap.Seen(locktest.Wait, 1))

	set(dest, "IMPORTING", id(source))
	set(source, "MIGRATING", id(dest))
	host, port, _ := net.SplitHostPort(target)
	if err := source.Do(t.Context(), "MIGRATE", host, port, "lock:{"+s.key+"}", 0, 5000).Err(); err != nil {
		t.Fatal(err) // its queue stays where it was
	}
	mustPass(t, lease, served)
	for range 3 {
		if err := locker.Do(t.Context(), s.key, nothing); err != nil && !paused(err) {
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

// masterDies: a lease that the replica knows of outlives its master, and those who wait have the key after its holder,
// with higher fences.
func masterDies(t *testing.T, s shard) {
	holder := &renewals{Backend: lock.NewRedis(s.connect(t)), ok: make(chan struct{}, 1)}
	lease := mustAcquire(t, newLocker(t, holder, lock.Options{TTL: failoverTTL}), s.key)
	db := &database{highest: lease.Fence()}
	w := s.wait(t, db)
	s.awaitReplica(t)

	s.kill(t)
	select {
	case <-holder.ok: // of before: only the one that comes next counts
	default:
	}
	select {
	case <-holder.ok:
	case <-lease.Context().Done():
		t.Fatalf("the lease did not outlive the master: %v", context.Cause(lease.Context()))
	}
	if n := w.served.Load(); n > 0 {
		t.Errorf("the key was had %d times while it was held", n)
	}
	mustRelease(t, lease)
	w.Wait()
}

// shard is a master of a cluster with its replica, and a key that is kept there.
type shard struct {
	cluster              *testserver.RedisGroup
	master, replica, key string
}

func newShard(t *testing.T, g *testserver.RedisGroup, i int) shard {
	t.Helper()
	s := shard{cluster: g, master: g.Addrs[i], replica: g.Addrs[i+3]}
	client := connectCluster(t, g.Addrs)
	for i := 0; ; i++ {
		s.key = fmt.Sprintf("%s/%d", t.Name(), i)
		master, err := client.MasterForKey(t.Context(), s.key)
		if err != nil {
			t.Fatal(err)
		}
		if master.Options().Addr == s.master {
			return s
		}
	}
}

func (s shard) connect(t *testing.T) redis.UniversalClient { return connectCluster(t, s.cluster.Addrs) }

// kill ends the master. Its replica takes over at once.
func (s shard) kill(t *testing.T) {
	t.Helper()
	testserver.Must(t, s.cluster.KillNode(t.Context(), s.master))
	if err := connect(t, s.replica).Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err(); err != nil {
		t.Fatalf("TAKEOVER: %v", err)
	}
}

// waiters are other processes that want the key.
type waiters struct {
	sync.WaitGroup
	served atomic.Int64
}

// wait returns when several processes stand in line for the key. Each has it a few times within a bounded time, and
// asks again when it hears of a failure.
func (s shard) wait(t *testing.T, db *database) *waiters {
	t.Helper()
	const processes, turns = 3, 5
	ctx, cancel := context.WithTimeout(t.Context(), failoverTTL+failoverTime)
	w := &waiters{}
	t.Cleanup(func() { cancel(); w.Wait() })
	for range processes {
		tap := locktest.NewTap(lock.NewRedis(s.connect(t)))
		locker := newLocker(t, tap, lock.Options{TTL: failoverTTL})
		w.Go(func() {
			for n := 0; n < turns; {
				err := locker.Do(ctx, s.key, func(ctx context.Context, lease *lock.Lease) error {
					if !db.accepts(lease.Fence()) && ctx.Err() == nil {
						t.Errorf("fence %d is refused", lease.Fence())
					}
					w.served.Add(1)
					n++
					return nil
				})
				if ctx.Err() != nil {
					t.Errorf("%d of %d turns: %v", n, turns, err)
					return
				}
			}
		})
		await(t, "waiter", tap.Seen(locktest.Wait, 1))
	}
	return w
}

// awaitReplica returns when the replica knows all that its master knows.
func (s shard) awaitReplica(t *testing.T) {
	t.Helper()
	conn := connect(t, s.master).Conn() // WAIT is about what its own connection wrote
	defer func() { _ = conn.Close() }()
	if err := conn.Set(t.Context(), "{"+s.key+"}:last", "", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Wait(t.Context(), 1, 20*time.Second).Result(); err != nil || n < 1 {
		t.Fatalf("the replica is not up to date: %v", err)
	}
}

// database is what the lock guards: it accepts no fence below one that it saw.
type database struct {
	mu      sync.Mutex
	highest int64
}

func (d *database) accepts(fence int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if fence <= d.highest {
		return false
	}
	d.highest = fence
	return true
}

// renewals is a Backend that tells of each renewal that worked.
type renewals struct {
	lock.Backend
	ok chan struct{}
}

func (r *renewals) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	fence, err := r.Backend.Renew(ctx, c)
	if err == nil {
		select {
		case r.ok <- struct{}{}:
		default:
		}
	}
	return fence, err
}
