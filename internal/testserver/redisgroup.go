package testserver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go/exec"
)

var (
	//go:embed rediscluster.sh
	clusterScript string
	//go:embed redissentinel.sh
	sentinelScript string

	groups sync.Map // of an address in a group: its *Server
)

// startGroup starts a shell script that starts n servers in one container. They reach each other, and tests reach them, at
// the addresses returned.
func startGroup(t testing.TB, name, script string, n int) (addrs []string) {
	t.Helper()
	k := redisKind()
	k.name, k.processes, k.command = name, n, []string{"sh", "-c", script, name}
	s := own(t, k)
	for _, port := range s.ports {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		groups.Store(addr, s)
		addrs = append(addrs, addr)
	}
	return addrs
}

// KillProcess ends one server of StartRedisCluster or StartRedisSentinel as a crash would, by SIGKILL. The others go on.
func KillProcess(t testing.TB, addr string) {
	t.Helper()
	s, ok := groups.Load(addr)
	if !ok {
		t.Fatalf("testserver: no group has a process at %s", addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultLimit)
	defer cancel()
	_, port, _ := net.SplitHostPort(addr)
	command := fmt.Sprintf(`kill -KILL "$(cat /tmp/%s/pid)"`, port)
	code, _, err := s.(*Server).container.Exec(ctx, []string{"sh", "-c", command}, exec.Multiplexed())
	if err != nil || code != 0 {
		t.Fatalf("testserver: kill the process at %s: code %d, %v", addr, code, err)
	}
}

// do sends a command to one server and returns its answer.
func do(t testing.TB, addr string, args ...any) any {
	t.Helper()
	answer, err := ask(t.Context(), addr, args...).Result()
	if err != nil {
		t.Fatalf("testserver: %v at %s: %v", args, addr, err)
	}
	return answer
}

// reports returns nil if the command's answer, as of INFO, has these pairs of fields and values.
func reports(ctx context.Context, addr string, command []any, pairs ...string) error {
	info, err := ask(ctx, addr, command...).Text()
	for i := 0; err == nil && i < len(pairs); i += 2 {
		if got := field(info, pairs[i]); got != pairs[i+1] {
			err = fmt.Errorf("%s is %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
	return err
}

const (
	clusterMasters = 3
	clusterNodes   = 2 * clusterMasters
	clusterSlots   = 16384
	firstBus       = 11001 // as in rediscluster.sh
)

// StartRedisCluster starts a Redis Cluster for this test alone, and returns when all of it works. The first three nodes
// are masters of a third of the slots each; the other three are their replicas, in the same order.
func StartRedisCluster(t testing.TB) (addrs []string) {
	t.Helper()
	addrs = startGroup(t, "Redis Cluster", clusterScript, clusterNodes)
	for i, addr := range addrs {
		if i < clusterMasters {
			first, end := clusterSlots*i/clusterMasters, clusterSlots*(i+1)/clusterMasters
			do(t, addr, "CLUSTER", "ADDSLOTSRANGE", first, end-1)
		}
		// Epochs that differ from the beginning need not be sorted out by collisions.
		do(t, addr, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		for j, other := range addrs[:i] {
			host, port, _ := net.SplitHostPort(other)
			do(t, addr, "CLUSTER", "MEET", host, port, firstBus+j)
		}
	}
	for i, addr := range addrs[clusterMasters:] {
		id := do(t, addrs[i], "CLUSTER", "MYID")
		eventually(t, "replication to "+addr, func(ctx context.Context) error {
			return ask(ctx, addr, "CLUSTER", "REPLICATE", id).Err() // refused until the two have met
		})
	}
	for i, addr := range addrs {
		linked := []string{"connected_slaves", "1"}
		if i >= clusterMasters {
			linked = []string{"master_link_status", "up"}
		}
		eventually(t, "cluster at "+addr, func(ctx context.Context) error {
			return errors.Join(
				reports(ctx, addr, []any{"CLUSTER", "INFO"}, "cluster_state", "ok",
					"cluster_slots_ok", strconv.Itoa(clusterSlots), "cluster_known_nodes", strconv.Itoa(clusterNodes),
					"cluster_size", strconv.Itoa(clusterMasters)),
				reports(ctx, addr, []any{"INFO", "replication"}, linked...))
		})
	}
	return addrs
}

// SentinelName is what the Sentinels of StartRedisSentinel call the master.
const SentinelName = "main"

// StartRedisSentinel starts, for this test alone, a Redis master with two replicas and three Sentinels, which replace a
// master that has been silent for half a minute, or sooner with KillSentinelMaster. It returns when each Sentinel knows all
// others.
func StartRedisSentinel(t testing.TB) (master string, sentinels []string) {
	t.Helper()
	addrs := startGroup(t, "Redis Sentinel", sentinelScript, 6)
	master, sentinels = addrs[0], addrs[3:]
	for _, addr := range sentinels {
		// One whose timer is two seconds late, as on a busy machine, would replace no master for the next 30 seconds.
		do(t, addr, "SENTINEL", "DEBUG", "tilt-trigger", 60_000)
	}
	for _, addr := range sentinels {
		eventually(t, "Sentinel at "+addr, func(ctx context.Context) error {
			return reports(ctx, addr, []any{"INFO", "sentinel"},
				"sentinel_tilt", "0", // else its timer was late before tilt-trigger
				"master0", "name="+SentinelName+",status=ok,address="+master+",slaves=2,sentinels=3")
		})
	}
	return master, sentinels
}

// KillSentinelMaster ends the master of StartRedisSentinel by KillProcess, and lets the Sentinels replace one that has been
// silent for a second until each of them names another. At all other times a pause of the machine counts as no death.
func KillSentinelMaster(t testing.TB, master string, sentinels []string) {
	t.Helper()
	KillProcess(t, master)
	setDownAfter := func(d time.Duration) {
		for _, addr := range sentinels {
			do(t, addr, "SENTINEL", "SET", SentinelName, "down-after-milliseconds", d.Milliseconds())
		}
	}
	setDownAfter(time.Second)
	for _, addr := range sentinels {
		eventually(t, "failover at "+addr, func(ctx context.Context) error {
			now, err := ask(ctx, addr, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelName).StringSlice()
			if err == nil && net.JoinHostPort(now[0], now[1]) == master {
				err = errors.New("the dead master is still the one")
			}
			return err
		})
	}
	setDownAfter(30 * time.Second) // as in redissentinel.sh
}
