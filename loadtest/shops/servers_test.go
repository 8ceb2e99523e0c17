package shops

import (
	"strings"
	"testing"

	"example.com/shop/internal/testserver"
)

// "If it fails, no container is left": the others are removed if one cannot be started.
func TestServers_Start_fails(t *testing.T) {
	testserver.Redis(t) // or there is no Docker
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
