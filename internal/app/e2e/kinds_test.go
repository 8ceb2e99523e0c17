package e2e_test

import (
	"fmt"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
)

// kind is what a shop runs on.
type kind struct {
	name     string
	settings func(*testing.T) app.Settings // with an empty database and a Redis of the test's own
}

func kinds() []kind {
	return []kind{
		{name: "embedded", settings: embedded},
		{name: "MySQL", settings: onServers(testserver.MySQL)},
		{name: "MariaDB", settings: onServers(testserver.MariaDB)},
	}
}

func embedded(t *testing.T) app.Settings {
	t.Helper()
	addrs, stop, err := lab.StartEmbedded(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s := app.Default()
	s.Data, s.Redis = t.TempDir(), addrs[0]
	return s
}

func onServers(dsn func(testing.TB) string) func(*testing.T) app.Settings {
	return func(t *testing.T) app.Settings {
		t.Helper()
		s := app.Default()
		s.MySQL, s.Redis = dsn(t), redisDatabase(t)
		database, err := app.OpenDatabase(t.Context(), s.DatabaseSettings)
		if err != nil {
			t.Fatal(err)
		}
		defer database.Close()
		if _, err := database.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// redisDatabases are those that a Redis has unless it is told otherwise.
var redisDatabases = func() chan int {
	free := make(chan int, 16)
	for i := range cap(free) {
		free <- i
	}
	return free
}()

// redisDatabase returns the URL of one that nobody else uses until the test ends: two shops must not share their locks.
func redisDatabase(t *testing.T) string {
	t.Helper()
	addr := testserver.Redis(t)
	free := <-redisDatabases
	t.Cleanup(func() { redisDatabases <- free })
	return fmt.Sprintf("redis://%s/%d", addr, free)
}
