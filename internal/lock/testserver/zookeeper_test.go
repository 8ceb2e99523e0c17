package testserver_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"example.com/shop/internal/lock/testserver"
)

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	addr := testserver.ZooKeeper(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(answer), "Mode: standalone") {
		t.Errorf("srvr: %q, %v; want a server that serves", answer, err)
	}
}

func TestStartZooKeeperEnsemble(t *testing.T) {
	t.Parallel()
	servers := testserver.StartZooKeeperEnsemble(t)
	leader := testserver.ZooKeeperLeader(t, servers)
	leader.Kill(t)
	next := testserver.ZooKeeperLeader(t, servers)
	if next == leader {
		t.Fatalf("%s leads though it was killed", leader)
	}
	leader.Restart(t) // returns when it follows
	next.Pause(t)
	if last := testserver.ZooKeeperLeader(t, servers); last == next {
		t.Errorf("%s leads though it is paused", next)
	}
}
