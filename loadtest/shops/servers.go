package shops

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
)

// Docker is the value of --servers that starts containers.
const Docker = "docker"

// Servers are flags that name the servers of the started shops, or ask for servers in containers.
type Servers struct {
	From      string   `group:"Servers" name:"servers" enum:"embedded,docker" default:"embedded" help:"embedded: SQLite and the Redis protocol in this process. docker: MySQL, six Redis and a ZooKeeper in containers, which are removed at the end."`
	MySQL     string   `group:"Servers" name:"mysql" placeholder:"DSN" help:"Use this MySQL or MariaDB: user:password@tcp(host:3306)/database. It is migrated, and gains SKUs and orders: name a database for tests."`
	Redis     string   `group:"Servers" placeholder:"ADDR" help:"Use this Redis: host:port or redis:// URL."`
	Redlock   []string `group:"Servers" placeholder:"ADDR,..." help:"Use these Redis for the strategy redlock: an odd number of independent servers. Without this flag and --redis: five embedded servers."`
	ZooKeeper string   `group:"Servers" name:"zookeeper" placeholder:"ADDR" help:"Use this ZooKeeper: host:port, several hosts with commas."`
}

// Check reads the addresses without connecting.
func (s *Servers) Check() error {
	if s.From == Docker && s.Named() {
		return errors.New("--servers docker starts all servers: leave out --mysql, --redis, --redlock and --zookeeper")
	}
	settings := s.settings()
	if s.MySQL == "" {
		settings.Data = "." // nothing is opened
	}
	if err := settings.Check(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// settings returns the settings of a shop that uses the servers.
func (s *Servers) settings() lab.Settings {
	settings := lab.Default()
	settings.Listen = "127.0.0.1:0"
	settings.MySQL, settings.Redis, settings.Redlock, settings.ZooKeeper = s.MySQL, s.Redis, s.Redlock, s.ZooKeeper
	return settings
}

// Named reports whether the user has named a server.
func (s *Servers) Named() bool {
	return s.MySQL != "" || s.Redis != "" || len(s.Redlock) > 0 || s.ZooKeeper != ""
}

// Stores names the database and the Redis, without user and password. The addresses must be valid.
func (s *Servers) Stores() (database, redis string) {
	database, redis = "SQLite, embedded", "Redis protocol, embedded"
	if s.MySQL != "" {
		address, _ := app.MySQLAddress(s.MySQL)
		database = "MySQL or MariaDB at " + address
	}
	if s.Redis != "" {
		address, _ := app.RedisAddress(s.Redis)
		redis = "Redis at " + address
	}
	return database, redis
}

// Start starts the containers of --servers docker, all at the same time, and sets their addresses. It returns when they
// answer. If it fails, no container is left. stop removes the containers; if the process is killed, the reaper of
// testcontainers removes them.
func (s *Servers) Start(ctx context.Context, report func(line string)) (stop func() error, err error) {
	if s.From != Docker {
		return func() error { return nil }, nil
	}
	opens := []func(context.Context) (*testserver.Server, error){testserver.OpenMySQL, testserver.OpenZooKeeper}
	for range 1 + redlockNodes {
		opens = append(opens, testserver.OpenRedis)
	}
	report(fmt.Sprintf("starting %d containers: MySQL, ZooKeeper and %d Redis", len(opens), 1+redlockNodes))
	all, err := testserver.OpenAll(ctx, opens...)
	if err == nil {
		s.MySQL, err = all[0].NewSchema(ctx, "shop")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--servers docker: %w", err), all.Close())
	}
	s.ZooKeeper, s.Redis = all[1].Addr(), all[2].Addr()
	for _, server := range all {
		report(server.String())
	}
	for _, node := range all[3:] {
		s.Redlock = append(s.Redlock, node.Addr())
	}
	return all.Close, nil
}

// redlockNodes is the usual number of servers for Redlock.
const redlockNodes = 5
