package testserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

const ensembleSize = 3

// StartZooKeeperEnsemble starts three ZooKeepers for this test alone, of which any two go on without the third, and
// returns when all of them serve. Each is a Server as that of StartZooKeeper: durable, at an address that it keeps. A
// leader that is gone is missed after 2 s.
func StartZooKeeperEnsemble(t testing.TB) []*Server {
	t.Helper()
	pool.ready(t, zookeeperKind())
	network := pool.network(t)
	servers := make([]*Server, ensembleSize)
	failed := make(chan error, ensembleSize)
	for i := range servers {
		go func() { // one that is alone does not serve
			s, err := pool.start(memberKind(), memberOptions(network, i+1))
			servers[i] = s
			failed <- err
		}()
	}
	var errs []error
	for range servers {
		errs = append(errs, <-failed)
	}
	for _, s := range servers {
		if s != nil {
			pool.owned(t, s)
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("testserver: %v", err)
	}
	return servers
}

// memberKind is zookeeperKind as one of an ensemble.
func memberKind() kind {
	k := zookeeperKind()
	k.env = maps.Clone(k.env)
	extra := []string{
		k.env["ZOO_CFG_EXTRA"],
		"initLimit=50", // ticks: a follower may take 5 s to start
		"syncLimit=20", // and 2 s to answer
	}
	for n := range ensembleSize {
		extra = append(extra, fmt.Sprintf("server.%d=%s:2888:3888;2181", n+1, memberName(n+1)))
	}
	k.env["ZOO_CFG_EXTRA"] = strings.Join(extra, " ")
	// A name is not known before its server is started, and Java would remember that for 10 s.
	k.env["JVMFLAGS"] += " -Dsun.net.inetaddr.ttl=0 -Dsun.net.inetaddr.negative.ttl=0"
	return k
}

func memberOptions(network string, n int) startOptions {
	return startOptions{
		durable:   true,
		fixedPort: true,
		network:   network,
		alias:     memberName(n),
		files:     map[string][]byte{"/data/myid": []byte(fmt.Sprint(n))},
	}
}

func memberName(n int) string { return fmt.Sprint("zookeeper", n) }

// ZooKeeperLeader returns the server that leads the others. It waits until one does.
func ZooKeeperLeader(t testing.TB, servers []*Server) (leader *Server) {
	t.Helper()
	eventually(t, "a leader", func(ctx context.Context) error {
		for _, s := range servers {
			if answer, err := zookeeperStatus(ctx, s.addr); err == nil && strings.Contains(answer, "\nMode: leader") {
				leader = s
				return nil
			}
		}
		return errors.New("none of the servers leads")
	})
	return leader
}
