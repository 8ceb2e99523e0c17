// Package shops starts shops: for races and lessons in this process, and for the benchmark and the
// faults as programs in processes of their own.
//
// Instances in this process are as separate as processes: each has its own connections, lockers and
// HTTP server. They share one database and one Redis. Unless real servers are named, both are embedded,
// fresh for each race, in a temporary folder that Close removes.
package shops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/crowd"
)

// Instances are shops in this process, or a running shop.
type Instances struct {
	Target string // URL of a running shop or of a load balancer: no shop is started
	Count  int
	Servers
	LockTTL time.Duration // of all locks; a batch waits as long for a lease, and a request waits a minute; 0: a shop's defaults
	Log     *slog.Logger  // gets the errors of the shops; nil discards them
}

// payWithin is the time for which unpaid orders keep their units. It is longer than a race and its verdict take.
const payWithin = 2 * time.Hour

// CheckDescriptors returns a crowd.ErrDescriptors unless this process may open the files and connections of several
// concurrent races. A connection to a shop or a Redis in this process has both ends here. The hard limit counts,
// because Go raises the soft limit when a process starts.
func (n Instances) CheckDescriptors(races, buyers int) error {
	need := buyers
	if n.Target == "" {
		pools := n.Count * 10 * runtime.GOMAXPROCS(0) // go-redis' limit; a buyer waits for one answer at a time
		need = 2*buyers + 2*min(pools, buyers) + n.Count*80
	}
	need = races*need + 50
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= uint64(need) {
		return nil //nolint:nilerr // a system without limits
	}
	return fmt.Errorf("%w: this needs a limit of %d (ulimit -n %[2]d), but the limit is %d", crowd.ErrDescriptors, need, limit.Cur)
}

// Set is the shops of one race.
type Set struct {
	URLs []string
	Undo // Close also returns the error of a shop that stopped by itself
}

// Undo is a list of steps that stop and remove started things.
type Undo struct{ steps []func() error }

// Later adds a step to Close.
func (u *Undo) Later(step func() error) { u.steps = append(u.steps, step) }

// Close executes all steps, the last first, even if some fail.
func (u *Undo) Close() (err error) {
	for _, step := range slices.Backward(u.steps) {
		err = errors.Join(err, step())
	}
	u.steps = nil
	return err
}

// Open returns teaching shops that answer, on a migrated database. It starts the unnamed servers, and then the shops.
func (n Instances) Open(ctx context.Context) (_ *Set, err error) {
	s := new(Set)
	if n.Target != "" {
		s.URLs = []string{n.Target}
		return s, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	settings := n.settings()
	settings.PayWithin, settings.Log = payWithin, n.Log
	settings.ReconcileAt, settings.SweepEvery = "off", payWithin
	if n.LockTTL > 0 {
		settings.LockTTL, settings.ShortTTL, settings.LeaseWait, settings.LockWait = n.LockTTL, n.LockTTL, n.LockTTL, time.Minute
	}
	if n.MySQL == "" {
		if settings.Data, err = os.MkdirTemp("", "shop-loadtest-"); err != nil {
			return nil, fmt.Errorf("folder for the embedded database: %w", err)
		}
		s.Later(func() error { return os.RemoveAll(settings.Data) })
	}
	if n.Redis == "" { // one Redis for all instances, and five for Redlock
		addrs, stop, err := lab.StartEmbedded(1 + redlockNodes)
		if err != nil {
			return nil, err
		}
		s.Later(stop)
		settings.Redis = addrs[0]
		if len(n.Redlock) == 0 {
			settings.Redlock = addrs[1:]
		}
	}
	if n.MySQL != "" { // on a SQLite file, a shop does this itself
		if err := migrate(ctx, settings); err != nil {
			return nil, err
		}
	}
	for i := range n.Count {
		shop, err := lab.Start(ctx, settings)
		if err != nil {
			return nil, fmt.Errorf("start shop %d of %d: %w", i+1, n.Count, err)
		}
		s.Later(func() error { return shop.Shutdown(context.WithoutCancel(ctx)) })
		s.URLs = append(s.URLs, shop.URL())
	}
	return s, nil
}

// migrate brings the schema up to date, unless the server looks like production's.
func migrate(ctx context.Context, settings lab.Settings) error {
	if err := settings.Check(); err != nil {
		return err
	}
	database, err := app.OpenDatabase(ctx, settings.DatabaseSettings)
	if err != nil {
		return err
	}
	_, err = database.Migrate(ctx)
	return errors.Join(err, database.Close())
}

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
