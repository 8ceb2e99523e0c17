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

// Servers are flags: the servers of the shops that are started, those of the user or real ones in containers.
type Servers struct {
	MySQL     string   `name:"mysql" placeholder:"DSN" help:"Let the shops that are started use this MySQL or MariaDB: user:password@tcp(host:3306)/database. It is migrated and gains SKUs and orders: use one for tests."`
	Redis     string   `placeholder:"ADDR" help:"Let the shops that are started use this Redis: host:port or redis:// URL."`
	Redlock   []string `placeholder:"ADDR,..." help:"Let them use these Redis for redlock: an odd number of independent servers. Without it and without --redis, five embedded ones."`
	ZooKeeper string   `name:"zookeeper" placeholder:"ADDR" help:"Let them use this ZooKeeper: host:port, several with commas."`
	From      string   `name:"servers" enum:"embedded,docker" default:"embedded" help:"Where servers come from that are not named: embedded in this process, as far as that can be, or docker, which starts MySQL, six Redis and a ZooKeeper in containers and removes them at the end."`
}

// Check reads the addresses without connecting.
func (s *Servers) Check() error {
	if s.From == Docker && s.Named() {
		return errors.New("--servers docker starts all servers; leave out --mysql, --redis, --redlock and --zookeeper")
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

// settings are those of a shop that uses the servers.
func (s *Servers) settings() lab.Settings {
	settings := lab.Default()
	settings.Listen = "127.0.0.1:0"
	settings.MySQL, settings.Redis, settings.Redlock, settings.ZooKeeper = s.MySQL, s.Redis, s.Redlock, s.ZooKeeper
	return settings
}

// Named reports whether servers of the user's own are to be used.
func (s *Servers) Named() bool {
	return s.MySQL != "" || s.Redis != "" || len(s.Redlock) > 0 || s.ZooKeeper != ""
}

// Stores names the database and the Redis, without user and password. The addresses were checked.
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

// Start starts containers, if they are asked for, all at the same time, and notes their addresses. It returns when they
// answer, or none is left. stop removes them; where the process is killed before that, the reaper of testcontainers does.
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

// redlockNodes is with how many servers Redlock is usually described.
const redlockNodes = 5
