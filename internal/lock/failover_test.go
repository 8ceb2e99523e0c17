package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/testserver"
)

// failover is a Redis whose master can die, to be replaced by a replica.
type failover struct {
	connect  dial
	key      string // kept by that master
	master   string
	replicas []string // of that master
	kill     func(t *testing.T)
	ttl      time.Duration // longer than it takes until there is a new master
}

// failoverTime is for how long a master is missed at most: until it is replaced and the clients have found the new one.
const failoverTime = 15 * time.Second

// masterDies: a lease that the replicas know of outlives its master, and those who wait have the key after its holder,
// with higher fences.
func masterDies(t *testing.T, f failover) {
	o := lock.Options{TTL: f.ttl}
	holder := &renewals{Backend: lock.NewRedis(f.connect(t)), ok: make(chan struct{}, 1)}
	lease := mustAcquire(t, newLocker(t, holder, o), f.key)
	db := &database{highest: lease.Fence()}
	w := f.wait(t, db, o)
	f.awaitReplicas(t)

	f.kill(t)
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

// masterDiesAhead: "After a failover the new primary may not know of a lease, and grant the key again while its first
// holder still trusts it. The fence covers that as well."
func masterDiesAhead(t *testing.T, f failover) {
	o := lock.Options{TTL: f.ttl}
	f.cutReplicas(t)
	lease := mustAcquire(t, newLocker(t, lock.NewRedis(f.connect(t)), o), f.key)
	db := &database{highest: lease.Fence()}
	w := f.wait(t, db, o)

	f.kill(t)
	f.joinReplicas(t)
	w.Wait()
	if db.accepts(lease.Fence()) {
		t.Errorf("the database accepts %d of a holder whose successors wrote", lease.Fence())
	}
	select {
	case <-lease.Context().Done():
	case <-time.After(o.TTL):
		t.Error("the first holder still trusts its lease")
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
}

// waiters are other processes that want the key.
type waiters struct {
	sync.WaitGroup
	served atomic.Int64
}

// wait returns when several processes stand in line for the key. Each has it a few times within a bounded time, and
// asks again when it hears of a failure.
func (f failover) wait(t *testing.T, db *database, o lock.Options) *waiters {
	t.Helper()
	const processes, turns = 3, 5
	ctx, cancel := context.WithTimeout(t.Context(), o.TTL+failoverTime)
	w := &waiters{}
	t.Cleanup(func() { cancel(); w.Wait() })
	for range processes {
		tap := locktest.NewTap(lock.NewRedis(f.connect(t)))
		locker := newLocker(t, tap, o)
		w.Go(func() {
			for n := 0; n < turns; {
				err := locker.Do(ctx, f.key, func(ctx context.Context, lease *lock.Lease) error {
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

// awaitReplicas returns when the replicas know all that their master knows.
func (f failover) awaitReplicas(t *testing.T) {
	t.Helper()
	conn := connect(t, f.master).Conn() // WAIT is about what its own connection wrote
	defer func() { _ = conn.Close() }()
	if err := conn.Set(t.Context(), "{"+f.key+"}:last", "", 0).Err(); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Wait(t.Context(), len(f.replicas), 20*time.Second).Result()
	if err != nil || int(n) < len(f.replicas) {
		t.Fatalf("%d of %d replicas are up to date: %v", n, len(f.replicas), err)
	}
}

// cutReplicas keeps the replicas from their master, which refuses the name that they connect with.
func (f failover) cutReplicas(t *testing.T) {
	t.Helper()
	f.configure(t, "nobody")
	for _, replica := range f.replicas {
		if err := connect(t, replica).ClientKillByFilter(t.Context(), "TYPE", "master").Err(); err != nil {
			t.Fatalf("CLIENT KILL: %v", err)
		}
	}
}

func (f failover) joinReplicas(t *testing.T) {
	t.Helper()
	f.configure(t, "")
}

func (f failover) configure(t *testing.T, user string) {
	t.Helper()
	for _, replica := range f.replicas {
		rdb := connect(t, replica)
		for _, name := range []string{"masteruser", "masterauth"} {
			if err := rdb.ConfigSet(t.Context(), name, user).Err(); err != nil {
				t.Fatalf("CONFIG SET %s: %v", name, err)
			}
		}
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

func TestCluster(t *testing.T) { //nolint:tparallel // one after the other: the last ones break what they use
	t.Parallel()
	nodes := testserver.StartRedisCluster(t)
	t.Run("MasterDies", func(t *testing.T) { masterDies(t, shard(t, nodes, 0)) })
	t.Run("MasterDiesAhead", func(t *testing.T) { masterDiesAhead(t, shard(t, nodes, 1)) })
}

// keyOn returns a key that is kept on the node.
func keyOn(t *testing.T, client *redis.ClusterClient, node string) string {
	t.Helper()
	for i := 0; ; i++ {
		key := fmt.Sprintf("%s/%d", t.Name(), i)
		master, err := client.MasterForKey(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if master.Options().Addr == node {
			return key
		}
	}
}

// shard is one master of the cluster with its replica, which takes over at once.
func shard(t *testing.T, g *testserver.RedisGroup, i int) failover {
	t.Helper()
	nodes := g.Addrs
	return failover{
		ttl:      20 * time.Second,
		connect:  cluster(nodes),
		key:      keyOn(t, connectCluster(t, nodes), nodes[i]),
		master:   nodes[i],
		replicas: nodes[i+3 : i+4],
		kill: func(t *testing.T) {
			testserver.Must(t, g.KillNode(t.Context(), nodes[i]))
			if err := connect(t, nodes[i+3]).Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err(); err != nil {
				t.Fatalf("TAKEOVER: %v", err)
			}
		},
	}
}

func TestSentinel_MasterDies(t *testing.T) {
	t.Parallel()
	masterDies(t, startTrio(t))
}

func TestSentinel_MasterDiesAhead(t *testing.T) {
	t.Parallel()
	masterDiesAhead(t, startTrio(t))
}

// startTrio starts a master with two replicas, of which the Sentinels choose one when it dies.
func startTrio(t *testing.T) failover {
	t.Helper()
	g := testserver.StartRedisSentinel(t)
	first := redis.NewSentinelClient(&redis.Options{Addr: g.Addrs[3]})
	defer func() { _ = first.Close() }()
	replicas, err := first.Replicas(t.Context(), testserver.SentinelMaster).Result()
	if err != nil {
		t.Fatal(err)
	}
	f := failover{
		ttl:     20 * time.Second, // time for a second election, should the first come to nothing
		connect: sentinel(g.Addrs[3:]),
		key:     t.Name(),
		master:  g.Addrs[0],
		kill:    func(t *testing.T) { testserver.Must(t, g.FailOver(t.Context())) },
	}
	for _, replica := range replicas {
		f.replicas = append(f.replicas, net.JoinHostPort(replica["ip"], replica["port"]))
	}
	return f
}
