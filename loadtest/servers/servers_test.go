package servers

import (
	"context"
	"strings"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// needDocker skips the test where there are no containers.
func needDocker(t *testing.T) {
	t.Helper()
	testserver.MySQL(t)
	testserver.Redis(t)
	testserver.ZooKeeper(t)
}

// "Start starts all of them", each another one, and "Close removes them".
func TestStart(t *testing.T) {
	needDocker(t)
	s, err := Start(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = s.Close()
		}
	}()
	seen := map[string]bool{}
	for _, addr := range append([]string{s.Redis}, s.Redlock...) {
		seen[addr] = true
		if err := redisReady(t.Context(), addr); err != nil {
			t.Errorf("redis at %s: %v", addr, err)
		}
	}
	if len(seen) != 6 {
		t.Errorf("got Redis at %v and %v, want six", s.Redis, s.Redlock)
	}
	if err := zookeeperReady(t.Context(), s.ZooKeeper); err != nil {
		t.Errorf("zookeeper: %v", err)
	}
	containers := s.containers
	closed = true
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wantGone(t, containers)
}

// "or none is left": one that cannot be started takes the others with it.
func TestStart_fails(t *testing.T) {
	needDocker(t)
	t.Setenv("SHOP_TEST_ZOOKEEPER_IMAGE", "127.0.0.1:1/no/such:image")
	_, err := Start(t.Context(), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "SHOP_TEST_ZOOKEEPER_IMAGE") {
		t.Errorf("got %v, want an error that names the variable", err)
	}
}

// Ctrl-C while they start ends it.
func TestStart_interrupted(t *testing.T) {
	needDocker(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Start(ctx, func(line string) {
		if strings.Contains(line, "answers") {
			cancel()
		}
	})
	if err == nil || ctx.Err() == nil {
		t.Errorf("got %v, want the end of the context", err)
	}
}

func wantGone(t *testing.T, containers []testcontainers.Container) {
	t.Helper()
	for _, c := range containers {
		if _, err := c.State(t.Context()); err == nil {
			t.Errorf("container %s is still there", c.GetContainerID())
		}
	}
}
