package testserver

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go/exec"
)

// groupKind is a Redis image in which a shell script starts several servers.
func groupKind(name, script string) kind {
	k := redisKind()
	k.name = name
	k.fast = []string{"sh", "-c", script, name}
	return k
}

// on is the kind with its servers on these ports.
func (k kind) on(ports []int) kind {
	k.port = strconv.Itoa(ports[0]) + "/tcp"
	k.fast = slices.Clone(k.fast)
	for _, port := range ports {
		k.fast = append(k.fast, strconv.Itoa(port)) // the script's arguments
	}
	return k
}

// startGroup starts n servers in one container.
func startGroup(t testing.TB, name, script string, n int) (addrs []string) {
	t.Helper()
	for _, port := range pool.own(t, groupKind(name, script), startOptions{processes: n}).ports {
		addrs = append(addrs, local(port))
	}
	return addrs
}

// KillProcess ends one server of StartRedisCluster or StartRedisSentinel as a crash would, by SIGKILL. The others go on.
func KillProcess(t testing.TB, addr string) {
	t.Helper()
	s := pool.at(addr)
	if s == nil {
		t.Fatalf("testserver: nothing with several processes runs at %s", addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultLimit)
	defer cancel()
	_, port, _ := net.SplitHostPort(addr)
	command := fmt.Sprintf(`kill -KILL "$(cat /tmp/%s/pid)"`, port)
	code, _, err := s.container.Exec(ctx, []string{"sh", "-c", command}, exec.Multiplexed())
	if err != nil || code != 0 {
		t.Fatalf("testserver: kill the process at %s: code %d, %v", addr, code, err)
	}
}

// at returns the server of several processes that one of them is at, nil if there is none.
func (p *servers) at(addr string) *Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.alive {
		if slices.ContainsFunc(s.ports, func(port int) bool { return local(port) == addr }) {
			return s
		}
	}
	return nil
}

// eventually asks until the answer is no error, and fails the test if that takes too long.
func eventually(t testing.TB, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("testserver: %s: %v", what, err)
		case <-tick.C:
		}
	}
}
