package testserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// eventually asks a server until its answer is no error, and fails the test with the last error.
func eventually(t testing.TB, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	if err := poll(ctx, ask); err != nil {
		t.Fatalf("testserver: %s: %v", what, err)
	}
}

// poll asks until the answer is no error. When ctx ends it returns the last error.
func poll(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// The lowest port is above those of rediscluster.sh's buses.
const firstPort, endPort = 12000, 32000

var (
	givenMu sync.Mutex
	given   = map[int]bool{} // by freePorts, in this process
)

// freePorts returns TCP ports that nothing listens on, and that no other call returned. They are below 32768, where Linux
// begins to take the ports of outgoing connections and Docker those that it chooses: neither takes one before the server
// binds it, or while what listened there is killed.
func freePorts(n int) (ports []int, err error) {
	givenMu.Lock()
	defer givenMu.Unlock()
	for range 100 * n { // most are free
		port := firstPort + rand.IntN(endPort-firstPort)
		if given[port] {
			continue
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp", ":"+strconv.Itoa(port)); err != nil {
			continue
		}
		_ = listener.Close()
		given[port] = true
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found %d of %d free ports: %w", len(ports), n, err)
}

// Until polls a condition that has no way to signal. It fails the test after the limit.
func Until(t testing.TB, what string, limit time.Duration, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := poll(ctx, func(context.Context) error {
		if condition() {
			return nil
		}
		return errors.New("the condition does not hold")
	})
	if err != nil {
		t.Fatalf("not within %v: %s", limit, what)
	}
}
