package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// ZooKeeper returns the host:port of a ZooKeeper that the tests of this package share: a test uses nodes of its own.
// Sessions may last from 0.2 s to an hour, and end at most 0.1 s late.
func ZooKeeper(t testing.TB) (addr string) {
	t.Helper()
	return pool.shared(t, zookeeperKind()).addr
}

// StartZooKeeper starts a ZooKeeper for this test alone, for faults. It is durable: a killed one knows each node and
// each session again, and counts the sessions' timeouts anew.
func StartZooKeeper(t testing.TB) *Server {
	t.Helper()
	return pool.own(t, zookeeperKind(), startOptions{fixedPort: true, durable: true})
}

func zookeeperKind() kind {
	return kind{
		name:     "ZooKeeper",
		variable: "SHOP_TEST_ZOOKEEPER_IMAGE",
		image:    "zookeeper:3.9",
		port:     "2181/tcp",
		env: map[string]string{
			// A tick is how exactly sessions end, and half the shortest one that the server grants.
			"ZOO_TICK_TIME":              "100",
			"ZOO_CFG_EXTRA":              "maxSessionTimeout=3600000",
			"ZOO_MAX_CLIENT_CNXNS":       "0",     // no limit
			"ZOO_DATA_LOG_DIR":           "/data", // beside the snapshots: one directory to keep in memory
			"ZOO_4LW_COMMANDS_WHITELIST": "srvr",
			"ZOO_ADMINSERVER_ENABLED":    "false",
			"JVMFLAGS":                   "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1", // little work beside a test
		},
		data:    "/data",
		version: zookeeperVersion,
	}
}

func zookeeperVersion(ctx context.Context, addr string) (string, error) {
	text, err := zookeeperStatus(ctx, addr)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(text, "\n")
	version, told := strings.CutPrefix(first, "Zookeeper version: ")
	if !told {
		return "", errors.New("srvr tells no version")
	}
	version, _, _ = strings.Cut(version, "-") // what follows names the build
	return version, nil
}

// zookeeperStatus sends the four-letter word srvr. A server that listens but does not serve answers without a mode, which
// is an error here.
func zookeeperStatus(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(until); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	text := string(answer)
	if !strings.Contains(text, "\nMode: ") {
		return "", fmt.Errorf("srvr tells no mode: %q", text)
	}
	return text, nil
}
