package shops

import (
	"strings"
	"testing"

	"example.com/shop/internal/testserver"
)

// needDocker skips the test where there are no containers.
func needDocker(t *testing.T) {
	t.Helper()
	testserver.MySQL(t)
	testserver.Redis(t)
	testserver.ZooKeeper(t)
}

// Start starts all of them, "and stop removes them".
func TestServers_Start(t *testing.T) {
	needDocker(t)
	s := Servers{From: Docker}
	stop, err := s.Start(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, addr := range append([]string{s.Redis, s.ZooKeeper}, s.Redlock...) {
		seen[addr] = true
	}
	if len(seen) != 7 {
		t.Errorf("got %v, want seven different addresses", seen)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// "or none is left": one that cannot be started takes the others with it.
func TestServers_Start_fails(t *testing.T) {
	needDocker(t)
	t.Setenv("SHOP_TEST_ZOOKEEPER_IMAGE", "127.0.0.1:1/no/such:image")
	_, err := (&Servers{From: Docker}).Start(t.Context(), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "SHOP_TEST_ZOOKEEPER_IMAGE") {
		t.Errorf("got %v, want an error that names the variable", err)
	}
}

func TestServers_Stores(t *testing.T) {
	t.Parallel()
	s := Servers{MySQL: "shop:secret@tcp(db:3306)/shop", Redis: "redis://:secret@cache:6379/0"}
	if database, redis := s.Stores(); database != "MySQL or MariaDB at db:3306/shop" || redis != "Redis at cache:6379" {
		t.Errorf("got %q, %q, want them without passwords", database, redis)
	}
}
