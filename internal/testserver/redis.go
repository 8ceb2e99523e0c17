package testserver

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis returns the host:port of a Redis that the tests of a package share. A test must use keys and channels of its
// own, and no FLUSHALL.
func Redis(t testing.TB) (addr string) { return share(t, redisKind()).Addr() }

// RedisLike is like Redis, for another version or program. The variable names another image.
func RedisLike(t testing.TB, name, variable, image, program string) (addr string) {
	t.Helper()
	k := redisKind()
	k.name, k.variable, k.image, k.command[0] = name, variable, image, program
	return share(t, k).Addr()
}

func redisKind() kind {
	return kind{
		name:     "Redis",
		variable: "SHOP_TEST_REDIS_IMAGE",
		image:    "redis:8",
		port:     6379,
		command:  []string{"redis-server", "--save", "", "--appendonly", "no"},
		memory:   map[string]string{"/data": "rw"},
		ready:    func(ctx context.Context, addr string) error { return AskRedis(ctx, addr, "PING").Err() },
	}
}

// AskRedis sends a command to a Redis.
func AskRedis(ctx context.Context, addr string, command ...any) *redis.Cmd {
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: askLimit,
		DialerRetries: 1, // by default, a refused connection costs 0.4 s
	})
	defer func() { _ = rdb.Close() }()
	return rdb.Do(ctx, command...)
}

// RedisGroup is several Redis in one container: a Cluster, or a master, replicas and Sentinels.
type RedisGroup struct {
	*Server
	Addrs []string // by which the servers reach each other and clients reach them
	URL   string   // for the shop's --redis
}

//go:embed inside/node.sh
var node string

// openRedisGroup runs a shell script that starts six Redis in one container. The arguments of the script are the ports.
// A server is ready when its INFO and CLUSTER INFO match the expression ready. The group's URL names
// three servers, from number first on.
func openRedisGroup(ctx context.Context, script, ready string, first int, query string) (*RedisGroup, error) {
	k, isReady := redisKind(), regexp.MustCompile(ready)
	k.processes, k.command, k.files = 6, []string{"sh", "-c", script, "sh"}, map[string][]byte{"/node": []byte(node)}
	k.ready = func(ctx context.Context, addr string) error {
		info, err := AskRedis(ctx, addr, "INFO").Text()
		cluster, _ := AskRedis(ctx, addr, "CLUSTER", "INFO").Text() // an error without a Cluster
		if err == nil && !isReady.MatchString(info+cluster) {
			err = fmt.Errorf("%s does not know all others:\n%s%s", addr, info, cluster)
		}
		return err
	}
	s, err := k.start(ctx)
	if err != nil {
		return nil, err
	}
	g := &RedisGroup{Server: s}
	for _, port := range s.ports {
		g.Addrs = append(g.Addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	g.URL = fmt.Sprintf("redis://%s?addr=%s&addr=%s%s", g.Addrs[first], g.Addrs[first+1], g.Addrs[first+2], query)
	return g, nil
}

// KillNode ends one server by SIGKILL, as a crash does. The others go on.
func (g *RedisGroup) KillNode(ctx context.Context, addr string) error {
	_, port, _ := net.SplitHostPort(addr)
	return g.Exec(ctx, fmt.Sprintf(`kill -KILL "$(cat /tmp/%s/pid)"`, port))
}

//go:embed inside/cluster.sh
var clusterScript string

// OpenRedisCluster starts a Redis Cluster, and returns when all nodes work. The first three nodes are masters, each of
// a third of the slots; the other three are their replicas, in the same order.
func OpenRedisCluster(ctx context.Context) (*RedisGroup, error) {
	return openRedisGroup(ctx, clusterScript, `(?s)(connected_slaves:1\r|master_link_status:up\r).*`+
		`cluster_state:ok\r.*cluster_slots_ok:16384\r.*cluster_known_nodes:6\r.*cluster_size:3\r`, 0, "")
}

// MoveSlot migrates the slot of a key to another master, as a reshard does: to another master: further is the number
// of places between the two in the list of masters. When MoveSlot calls half, the key has moved, and the other keys of
// its slot have not. Each side also has a key of MoveSlot's own. Then it moves the rest, one key after the other.
func (g *RedisGroup) MoveSlot(ctx context.Context, further int, half func(), key string) error {
	masters, at := g.Addrs[:3], 0
	for at < len(masters)-1 && redis.HasErrorPrefix(AskRedis(ctx, masters[at], "EXISTS", key).Err(), "MOVED") {
		at++
	}
	source, target := masters[at], masters[(at+further)%len(masters)]
	slot, err := AskRedis(ctx, source, "CLUSTER", "KEYSLOT", key).Int()
	sourceID, failed := AskRedis(ctx, source, "CLUSTER", "MYID").Text()
	targetID, failedToo := AskRedis(ctx, target, "CLUSTER", "MYID").Text()
	if err := errors.Join(err, failed, failedToo); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(target)
	migrate := func(key string) error { return AskRedis(ctx, source, "MIGRATE", host, port, key, 0, 1000).Err() }
	if err := errors.Join(
		AskRedis(ctx, source, "SET", key+":moved", "", "EX", 60).Err(),
		AskRedis(ctx, source, "SET", key+":left", "", "EX", 60).Err(),
		AskRedis(ctx, target, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID).Err(),
		AskRedis(ctx, source, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID).Err(),
		migrate(key), migrate(key+":moved"),
	); err != nil {
		return err
	}
	half()
	left, err := AskRedis(ctx, source, "CLUSTER", "GETKEYSINSLOT", slot, 1000).StringSlice()
	for _, key := range left {
		err = errors.Join(err, migrate(key))
	}
	if err != nil {
		return err
	}
	for i := range masters { // the new owner first
		err = errors.Join(err, AskRedis(ctx, masters[(at+further+i)%len(masters)], "CLUSTER", "SETSLOT", slot, "NODE", targetID).Err())
	}
	return err
}

// SentinelMaster is the Sentinels' name of the master.
const SentinelMaster = "main"

//go:embed inside/sentinel.sh
var sentinelScript string

// OpenRedisSentinel starts a master with two replicas (the first three addresses) and three Sentinels (the others).
// If the master is silent for half a minute, the Sentinels replace it. OpenRedisSentinel returns when each Sentinel
// knows all others.
func OpenRedisSentinel(ctx context.Context) (*RedisGroup, error) {
	return openRedisGroup(ctx, sentinelScript, `(?s)connected_slaves:2\r|master_link_status:up\r|`+
		`sentinel_tilt:0\r.*status=ok,address=[^,]*,slaves=2,sentinels=3\r`, 3, "&master_name="+SentinelMaster)
}

// master returns the address of the master that a Sentinel names.
func (g *RedisGroup) master(ctx context.Context, sentinel string) (addr string, err error) {
	at, err := AskRedis(ctx, sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelMaster).StringSlice()
	return strings.Join(at, ":"), err
}

// CutReplicas cuts the replicas off from their master: they connect with a user name that the master refuses.
func (g *RedisGroup) CutReplicas(ctx context.Context) error {
	master, err := g.master(ctx, g.Addrs[3])
	for _, addr := range g.Addrs[:3] {
		if addr != master && err == nil {
			err = errors.Join(AskRedis(ctx, addr, "CONFIG", "SET", "masteruser", "nobody", "masterauth", "nobody").Err(),
				AskRedis(ctx, addr, "CLIENT", "KILL", "TYPE", "master").Err())
		}
	}
	return err
}

// FailOver kills the master and tells the Sentinels to replace it. By themselves they would wait for half a minute, so
// that a pause of the machine causes no failover. FailOver returns when each Sentinel names another master.
func (g *RedisGroup) FailOver(ctx context.Context) error {
	old, err := g.master(ctx, g.Addrs[3])
	if err != nil {
		return err
	}
	if err := g.KillNode(ctx, old); err != nil {
		return err
	}
	// A Sentinel refuses a failover while replicas still move to the master of an earlier failover.
	if err := Poll(ctx, func(ctx context.Context) error {
		return AskRedis(ctx, g.Addrs[3], "SENTINEL", "FAILOVER", SentinelMaster).Err()
	}); err != nil {
		return err
	}
	return Poll(ctx, func(ctx context.Context) (err error) {
		for _, sentinel := range g.Addrs[3:] {
			if master, failed := g.master(ctx, sentinel); failed != nil || master == old {
				err = fmt.Errorf("the Sentinel %s: %w", sentinel, cmp.Or(failed, fmt.Errorf("it names %s", master)))
			}
		}
		return err
	})
}

// Restore undoes CutReplicas, starts a killed node as a replica, and returns when all nodes are linked.
func (g *RedisGroup) Restore(ctx context.Context) error {
	master, err := g.master(ctx, g.Addrs[3])
	if err != nil {
		return err
	}
	_, masterPort, _ := net.SplitHostPort(master)
	for _, addr := range g.Addrs[:3] {
		if AskRedis(ctx, addr, "CONFIG", "SET", "masteruser", "", "masterauth", "").Err() == nil {
			continue
		}
		_, port, _ := net.SplitHostPort(addr)
		if err := g.Exec(ctx, fmt.Sprintf("sh /node %s --replica-announce-ip 127.0.0.1 --replica-announce-port %s "+
			"--replicaof 127.0.0.1 %s --daemonize yes",
			port, port, masterPort)); err != nil {
			return err
		}
	}
	return Poll(ctx, func(ctx context.Context) error { return g.answers(ctx, g.host) })
}
