package testserver

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisGroup is several Redis in one container, a Cluster or those of Sentinel.
type RedisGroup struct {
	*Server
	Addrs []string // at which the servers reach each other, and the test them
}

// startRedisGroup starts, for this test alone, a shell script that starts six Redis in one container. Its arguments are
// their ports.
func startRedisGroup(t testing.TB, script string) *RedisGroup {
	t.Helper()
	k := redisKind()
	k.processes, k.command = 6, []string{"sh", "-c", script, "sh"}
	g := &RedisGroup{Server: own(t, k)}
	for _, port := range g.ports {
		g.Addrs = append(g.Addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return g
}

// KillNode ends one server as a crash would, by SIGKILL. The others go on.
func (g *RedisGroup) KillNode(t testing.TB, addr string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	g.Exec(t, fmt.Sprintf(`kill -KILL "$(cat /tmp/%s/pid)"`, port))
}

func connectRedis(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// doRedis sends a command to one server and returns its answer.
func doRedis(t testing.TB, addr string, args ...any) any {
	t.Helper()
	rdb := connectRedis(t, addr)
	answer, err := rdb.Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatalf("%v at %s: %v", args, addr, err)
	}
	return answer
}

// awaitInfo returns when the command's answer, as of INFO, has these lines.
func awaitInfo(t testing.TB, addr, command string, lines ...string) {
	t.Helper()
	rdb := connectRedis(t, addr)
	Until(t, fmt.Sprintf("%s at %s has %q", command, addr, lines), time.Minute, func() bool {
		var args []any
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		info, err := rdb.Do(t.Context(), args...).Text()
		for _, line := range lines {
			if err != nil || !strings.Contains(info, line+"\r\n") {
				return false
			}
		}
		return true
	})
}

// clusterScript starts a Redis Cluster node on each port that is an argument; they do not know each other yet. A
// client's port is its own outside of the container, too. The bus needs none there.
const clusterScript = `
bus=11000
for port; do
    bus=$((bus + 1))
    mkdir -p "/tmp/$port"
    redis-server --port "$port" --dir "/tmp/$port" --pidfile "/tmp/$port/pid" --protected-mode no \
        --save '' --appendonly no --repl-diskless-sync-delay 0 \
        --cluster-enabled yes --cluster-port "$bus" --cluster-node-timeout 5000 \
        --cluster-announce-ip 127.0.0.1 --cluster-announce-port "$port" --cluster-announce-bus-port "$bus" &
done
wait`

// StartRedisCluster starts a Redis Cluster, and returns when all of it works. The first three nodes are masters of a third
// of the slots each; the other three are their replicas, in the same order.
func StartRedisCluster(t testing.TB) *RedisGroup {
	t.Helper()
	const masters, slots, firstBus = 3, 16384, 11001
	g := startRedisGroup(t, clusterScript)
	for i, addr := range g.Addrs {
		if i < masters {
			doRedis(t, addr, "CLUSTER", "ADDSLOTSRANGE", slots*i/masters, slots*(i+1)/masters-1)
		}
		// Epochs that differ from the beginning need not be sorted out by collisions.
		doRedis(t, addr, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		for j, other := range g.Addrs[:i] {
			host, port, _ := net.SplitHostPort(other)
			doRedis(t, addr, "CLUSTER", "MEET", host, port, firstBus+j)
		}
	}
	for i, addr := range g.Addrs[masters:] {
		id, rdb := doRedis(t, g.Addrs[i], "CLUSTER", "MYID"), connectRedis(t, addr)
		Until(t, "replication to "+addr, time.Minute, func() bool { // refused until the two have met
			return rdb.Do(t.Context(), "CLUSTER", "REPLICATE", id).Err() == nil
		})
	}
	for i, addr := range g.Addrs {
		linked := "connected_slaves:1"
		if i >= masters {
			linked = "master_link_status:up"
		}
		awaitInfo(t, addr, "CLUSTER INFO", "cluster_state:ok", "cluster_slots_ok:"+strconv.Itoa(slots),
			"cluster_known_nodes:6", "cluster_size:3")
		awaitInfo(t, addr, "INFO replication", linked)
	}
	return g
}

// SentinelMaster is what the Sentinels call the master.
const SentinelMaster = "main"

// sentinelScript starts a Redis master, two replicas of it, and three Sentinels, on the ports that are the arguments. A
// Sentinel that finds the replicas at its first look need not wait ten seconds for its second. An election that came to
// nothing is held again after twice the failover-timeout.
const sentinelScript = `
master=$1
started=0
for port; do
    started=$((started + 1))
    mkdir -p "/tmp/$port"
    if [ "$started" -le 3 ]; then
        replicaof=''
        [ "$port" = "$master" ] || replicaof="--replicaof 127.0.0.1 $master"
        redis-server --port "$port" --dir "/tmp/$port" --pidfile "/tmp/$port/pid" --protected-mode no \
            --save '' --appendonly no --repl-diskless-sync-delay 0 \
            --replica-announce-ip 127.0.0.1 --replica-announce-port "$port" $replicaof &
        continue
    fi
    until redis-cli -p "$master" info replication | grep -q connected_slaves:2; do sleep 0.05; done
    cat >"/tmp/$port/sentinel.conf" <<CONF
port $port
dir /tmp/$port
pidfile /tmp/$port/pid
protected-mode no
sentinel announce-ip 127.0.0.1
sentinel announce-port $port
sentinel monitor main 127.0.0.1 $master 2
sentinel down-after-milliseconds main 30000
sentinel failover-timeout main 1000
CONF
    redis-server "/tmp/$port/sentinel.conf" --sentinel &
done
wait`

// StartRedisSentinel starts a master with two replicas, the first three addresses, and three Sentinels, the others. They
// replace a master that has been silent for half a minute, or sooner with KillMaster. It returns when each Sentinel
// knows all others.
func StartRedisSentinel(t testing.TB) *RedisGroup {
	t.Helper()
	g := startRedisGroup(t, sentinelScript)
	for _, addr := range g.Addrs[3:] {
		// One whose timer is two seconds late, as on a busy machine, would replace no master for the next 30 seconds.
		doRedis(t, addr, "SENTINEL", "DEBUG", "tilt-trigger", 60_000)
	}
	for _, addr := range g.Addrs[3:] {
		awaitInfo(t, addr, "INFO sentinel", "sentinel_tilt:0", // else its timer was late before tilt-trigger
			"master0:name="+SentinelMaster+",status=ok,address="+g.Addrs[0]+",slaves=2,sentinels=3")
	}
	return g
}

// KillMaster ends the master of StartRedisSentinel, and lets the Sentinels replace one that has been silent for a second
// until each of them names another. At all other times a pause of the machine counts as no death.
func (g *RedisGroup) KillMaster(t testing.TB) {
	t.Helper()
	g.KillNode(t, g.Addrs[0])
	setDownAfter := func(d time.Duration) {
		for _, addr := range g.Addrs[3:] {
			doRedis(t, addr, "SENTINEL", "SET", SentinelMaster, "down-after-milliseconds", d.Milliseconds())
		}
	}
	setDownAfter(time.Second)
	for _, addr := range g.Addrs[3:] {
		rdb := connectRedis(t, addr)
		Until(t, "failover at "+addr, time.Minute, func() bool {
			now, err := rdb.Do(context.Background(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelMaster).StringSlice()
			return err == nil && net.JoinHostPort(now[0], now[1]) != g.Addrs[0]
		})
	}
	setDownAfter(30 * time.Second)
}
