package servers

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"example.com/shop/internal/testserver"
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
	for _, addr := range append([]string{s.Redis, s.ZooKeeper}, s.Redlock...) {
		seen[addr] = true
	}
	if len(seen) != 7 {
		t.Errorf("got %v, want seven different addresses", seen)
	}
	all := s.all
	closed = true
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, one := range all {
		if _, err := one.container.State(t.Context()); err == nil {
			t.Errorf("container %s is still there", one.container.GetContainerID())
		}
	}
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
