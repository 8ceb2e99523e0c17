package testserver

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// ZooKeeper returns the host:port of a ZooKeeper that the tests of a package share. A test must use nodes of its own.
// Sessions may last from 0.2 s to an hour, and end at most 0.1 s late.
func ZooKeeper(t testing.TB) (addr string) { return share(t, zookeeperKind()).Addr() }

func zookeeperKind() kind {
	return kind{
		name:     "ZooKeeper",
		variable: "SHOP_TEST_ZOOKEEPER_IMAGE",
		image:    "zookeeper:3.9",
		port:     2181,
		env: map[string]string{
			// A tick is the precision of the end of sessions, and half the shortest timeout that the server grants.
			"ZOO_TICK_TIME":              "100",
			"ZOO_CFG_EXTRA":              "maxSessionTimeout=3600000",
			"ZOO_MAX_CLIENT_CNXNS":       "0",     // no limit
			"ZOO_DATA_LOG_DIR":           "/data", // beside the snapshots: one directory to keep in memory
			"ZOO_4LW_COMMANDS_WHITELIST": "srvr",
			"ZOO_ADMINSERVER_ENABLED":    "false",
			"JVMFLAGS":                   "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1", // little work beside a test
		},
		memory: map[string]string{"/data": "rw"},
		ready: func(ctx context.Context, addr string) error {
			_, err := ZooKeeperStatus(ctx, addr)
			return err
		},
	}
}

// ZooKeeperStatus returns the answer to the word srvr. A server that does not serve has no mode: an error.
func ZooKeeperStatus(ctx context.Context, addr string) (string, error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, err = io.WriteString(conn, "srvr")
	answer, failed := io.ReadAll(conn)
	if err = cmp.Or(err, failed); err == nil && !strings.Contains(string(answer), "\nMode: ") {
		err = fmt.Errorf("srvr reports no mode: %q", answer)
	}
	return string(answer), err
}

// OpenZooKeeperEnsemble starts three ZooKeepers that replicate each other. The leader's status has "Mode: leader".
func OpenZooKeeperEnsemble(ctx context.Context) (*Ensemble, error) {
	return openEnsemble(ctx, groupSize, memberKind, nil)
}

// memberKind returns the kind of a server of an ensemble.
func memberKind(i int, network string) kind {
	k := zookeeperKind().durable()
	name := func(i int) string { return fmt.Sprint("zookeeper", i+1) }
	k.network, k.alias = network, name(i)
	k.files = map[string][]byte{"/data/myid": []byte(fmt.Sprint(i + 1))}
	extra := k.env["ZOO_CFG_EXTRA"] + " initLimit=50 syncLimit=20" // ticks: 5 s to start, 2 s to answer
	for i := range groupSize {
		extra += fmt.Sprintf(" server.%d=%s:2888:3888;2181", i+1, name(i))
	}
	k.env["ZOO_CFG_EXTRA"] = extra
	// A name is unknown until its server is started, and Java would remember this for 10 s.
	k.env["JVMFLAGS"] += " -Dsun.net.inetaddr.ttl=0 -Dsun.net.inetaddr.negative.ttl=0"
	return k
}
