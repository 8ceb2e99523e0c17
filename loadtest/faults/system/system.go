// Package system has the system for the fault suite to break: shops in processes of their own, servers, and their network.
package system

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
	"example.com/shop/internal/testserver/overlay"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// Settings of all shops.
const (
	Instances     = 3                      // of the shop
	LockTTL       = 600 * time.Millisecond // unless the fault is Unnoticed, so that a fault outlasts a lease soon
	PayExtension  = time.Second            // time by which a hold is extended: the minimum of a shop
	ClockVariable = "FAULTS_CLOCK"         // environment variable: the seconds by which a shop's clock is ahead
)

// Kind names a set of servers.
type Kind string

// The kinds. All but Embedded run in containers, and have a Redis.
const (
	Embedded Kind = "embedded" // a SQLite file, and Redis' protocol in this process
	MySQL    Kind = "mysql"    // MySQL with durable commits
	Disk     Kind = "disk"     // MySQL on a small disk
	Group    Kind = "group"    // three MySQL in a group
	Replica  Kind = "replica"  // MySQL with an asynchronous replica, which may lose orders: a control
	Sentinel Kind = "sentinel" // MySQL, and a Redis with two replicas and three Sentinels
	Cluster  Kind = "cluster"  // MySQL, and a Redis Cluster of three masters with a replica each
)

// Settings say which system to open.
type Settings struct {
	Kind        Kind              `json:"servers"`
	Strategies  [Instances]string `json:"strategies"`   // of the shops
	Unnoticed   bool              `json:"unnoticed"`    // no request may fail; on a busy machine, the default time limits break no lease
	ClocksApart bool              `json:"clocks_apart"` // the shops' clocks differ: the program reads ClockVariable
	Older       bool              `json:"older"`        // the shops and the schema are of an older version, until Upgrade
}

// System has the running shops and servers. One goroutine breaks it; clients may use the shops meanwhile.
type System struct {
	Settings
	Shops      []*Shop
	DB         *sql.DB // bypasses the links of the shops
	MySQL      []*testserver.Server
	Redis      Server // nil for Sentinel and Cluster
	Group      *testserver.MySQLGroup
	RedisGroup *testserver.RedisGroup // of Sentinel and Cluster

	program shops.Program

	dir string          // has the program, and the SQLite file
	ctx context.Context //nolint:containedctx // of Close, which an interrupt does not end
	shops.Undo
}

// Server is a container, or Redis' protocol in this process, which can be killed and restarted.
type Server interface {
	Addr() string
	Do(context.Context, testserver.Fault) error
	Close() error
}

// Open builds the shop from sources of which some may be changed, and starts shops and their servers.
func Open(ctx context.Context, changed overlay.Overlay, settings Settings) (*System, error) {
	dir, err := os.MkdirTemp("", "shop-faults-")
	if err != nil {
		return nil, err
	}
	s := &System{Settings: settings, dir: dir, ctx: context.WithoutCancel(ctx)}
	s.Later(func() error { return os.RemoveAll(dir) })
	s.program = shops.Program{File: filepath.Join(dir, "shop"), Keys: shopclient.NewKeys()}
	list, err := changed.Write(dir)
	if err == nil {
		err = shops.Build(ctx, "", "cmd/shop", s.program.File, "-overlay", list)
	}
	program := s.program
	if err == nil && settings.Older {
		program.File += "-older"
		err = buildOlder(ctx, dir, program.File)
	}
	// Orders expire within a history, and clients have time to notice that an instance is about to end.
	// They are no flags, because an older version does not know all of them.
	env := []string{"SHOP_LOG_LEVEL=error", "SHOP_RECONCILE_AT=off", "SHOP_PAY_WITHIN=1s", "SHOP_PAY_EXTENSION=" + PayExtension.String(), "SHOP_RATE_LIMIT=100000"}
	if settings.Unnoticed {
		env = append(env, "SHOP_DRAIN_DELAY=2s")
	} else {
		env = append(env, "SHOP_DRAIN_DELAY=300ms", "SHOP_DRAIN=5s", "SHOP_LOCK_WAIT=4s", "SHOP_LOCK_TTL="+LockTTL.String())
	}
	opens := []func(context.Context) error{s.openDatabase, s.openRedis}
	for _, strategy := range settings.Strategies {
		shop := &Shop{program: program, env: append(slices.Clip(env), "SHOP_STRATEGY="+strategy)}
		s.Shops, opens = append(s.Shops, shop), append(opens, shop.Start)
	}
	for _, open := range opens {
		if err == nil {
			err = open(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start shops on %s: %w", s.Kind, err), s.Close())
	}
	return s, nil
}

// Close stops the shops, all together, and then the other parts, the last first.
func (s *System) Close() error {
	var all errgroup.Group
	for _, shop := range s.Shops {
		all.Go(func() error { return shop.Stop(s.ctx) })
	}
	return errors.Join(all.Wait(), s.Undo.Close())
}

// opened starts a part that the system closes.
func opened[T interface{ Close() error }](ctx context.Context, s *System, start func(context.Context) (T, error)) (T, error) {
	t, err := start(ctx)
	if err == nil {
		s.Later(t.Close)
	}
	return t, err
}

// openDatabase opens the database and creates the tables.
func (s *System) openDatabase(ctx context.Context) (err error) {
	settings := app.Default().DatabaseSettings
	if s.Kind == Embedded {
		settings.Data = s.dir
		for _, shop := range s.Shops {
			shop.env = append(shop.env, "SHOP_DATA="+s.dir)
		}
	} else if settings.MySQL, err = s.openMySQL(ctx); err != nil {
		return err
	}
	database, err := app.OpenDatabase(ctx, settings)
	if err != nil {
		return err
	}
	s.Later(database.Close)
	s.DB = database.DB()
	if s.Older {
		return s.Shops[0].program.Migrate(ctx, s.Shops[0].env)
	}
	_, err = database.Migrate(ctx)
	return err
}

// Upgrade migrates the schema of the older version. Shops that start from then on are of this version.
func (s *System) Upgrade(ctx context.Context) error {
	for _, shop := range s.Shops {
		shop.program = s.program
	}
	return s.program.Migrate(ctx, s.Shops[0].env)
}

// ErrNoHistory means that there is no Git history to build the older version from.
var ErrNoHistory = errors.New("this checkout has no history of the newest migration")

// buildOlder builds the shop of the commit before the newest migration was added.
func buildOlder(ctx context.Context, dir, file string) error {
	const unpack = `cd "$(go list -m -f '{{.Dir}}' example.com/shop)" &&
		added=$(git log -1 --diff-filter=A --format=%H -- internal/store/migrations) &&
		git archive --output="$0.tar" "$added^" && mkdir "$0" && tar -xf "$0.tar" -C "$0"`
	checkout := filepath.Join(dir, "older")
	out, err := exec.CommandContext(ctx, "sh", "-c", unpack, checkout).CombinedOutput() //nolint:gosec // a folder of its own
	if err != nil {
		return fmt.Errorf("%w: %w: %s", ErrNoHistory, err, out)
	}
	return shops.Build(ctx, checkout, "cmd/shop", file)
}

// openMySQL starts the database servers of the kind, with a link from each shop to each of them. It returns a data source
// name for this process, without links.
func (s *System) openMySQL(ctx context.Context) (dsn string, err error) {
	switch s.Kind {
	case Group:
		if s.Group, err = opened(ctx, s, testserver.OpenMySQLGroup); err == nil {
			s.MySQL = s.Group.Servers
		}
	case Replica:
		var two *testserver.Ensemble
		if two, err = opened(ctx, s, testserver.OpenMySQLReplica); err == nil {
			s.MySQL = two.Servers
		}
	default:
		open := testserver.OpenMySQL
		if s.Kind == Disk {
			open = testserver.OpenMySQLSmallDisk
		}
		s.MySQL = make([]*testserver.Server, 1)
		s.MySQL[0], err = opened(ctx, s, open)
	}
	if err != nil {
		return "", err
	}
	if dsn, err = s.MySQL[0].NewSchema(ctx, "shop", s.MySQL[1:]...); err != nil {
		return "", err
	}
	for _, shop := range s.Shops {
		linked := dsn
		for _, server := range s.MySQL {
			link, err := s.link(ctx, server.Addr(), true)
			if err != nil {
				return "", err
			}
			shop.SQL, linked = append(shop.SQL, link), strings.Replace(linked, server.Addr(), link.Addr, 1)
		}
		shop.env = append(shop.env, "SHOP_MYSQL="+linked)
	}
	return dsn, nil
}

func (s *System) link(ctx context.Context, to string, sql bool) (*testserver.Link, error) {
	link, err := testserver.NewLink(ctx, sql, to)
	if err == nil {
		s.Later(func() error { link.Close(); return nil })
	}
	return link, err
}

// openRedis starts Redis, with a link from each shop. Sentinels and Clusters announce addresses past a link.
func (s *System) openRedis(ctx context.Context) (err error) {
	switch s.Kind {
	case Sentinel:
		s.RedisGroup, err = opened(ctx, s, testserver.OpenRedisSentinel)
	case Cluster:
		s.RedisGroup, err = opened(ctx, s, testserver.OpenRedisCluster)
	case Embedded:
		s.Redis, err = opened(ctx, s, openEmbedded)
	default:
		s.Redis, err = opened(ctx, s, testserver.OpenRedis)
	}
	for _, shop := range s.Shops {
		if err != nil {
			return err
		}
		var url string
		if s.RedisGroup != nil {
			url = s.RedisGroup.URL
		} else if shop.Redis, err = s.link(ctx, s.Redis.Addr(), false); err == nil {
			url = shop.Redis.Addr
		}
		shop.env = append(shop.env, "SHOP_REDIS="+url)
	}
	return err
}

// embedded is Redis' protocol in this process. After a restart it is empty, at the same address.
type embedded struct {
	*miniredis.Miniredis
	addr string
}

func openEmbedded(ctx context.Context) (*embedded, error) {
	ports, err := testserver.FreePorts(1)
	if err != nil {
		return nil, err
	}
	e := &embedded{addr: fmt.Sprint("127.0.0.1:", ports[0])}
	return e, e.Do(ctx, testserver.Restart)
}

func (e *embedded) Addr() string { return e.addr }

func (e *embedded) Close() error {
	e.Miniredis.Close()
	return nil
}

func (e *embedded) Do(_ context.Context, f testserver.Fault) error {
	if f == testserver.Kill {
		return e.Close()
	}
	e.Miniredis = miniredis.NewMiniRedis()
	e.ClockTTL(true) // keys expire by the clock
	return e.StartAddr(e.addr)
}

// Shop is an instance of the shop, in a process of its own.
type Shop struct {
	SQL   []*testserver.Link // to each database server; none to a SQLite file
	Redis *testserver.Link   // nil for Sentinels and a Cluster
	Clock time.Duration      // by which the clock of the next process is ahead, if the program reads ClockVariable

	// Process is nil while clients avoid the shop. They still try to reach a killed or paused process.
	Process atomic.Pointer[shops.Process]

	program shops.Program
	env     []string
}

// Client returns a client of the shop, or nil while clients avoid the shop.
func (s *Shop) Client(conns *http.Client) *shopclient.Client {
	if process := s.Process.Load(); process != nil {
		return process.Client(conns)
	}
	return nil
}

// Start starts the process, and returns when it serves.
func (s *Shop) Start(ctx context.Context) error {
	env := append(slices.Clip(s.env), fmt.Sprintf("%s=%.0f", ClockVariable, s.Clock.Seconds()))
	process, err := s.program.Start(ctx, Instances, env)
	if err == nil {
		s.Process.Store(process)
	}
	return err
}

// Stop ends the process as an operator does. Clients avoid the shop as soon as it is not ready any more.
func (s *Shop) Stop(ctx context.Context) error {
	process := s.Process.Load()
	if process == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Stop() }()
	conns := shopclient.NewConnections(1, time.Second)
	defer conns.CloseIdleConnections()
	for process.Client(conns).Ready(ctx) == nil {
		time.Sleep(5 * time.Millisecond)
	}
	s.Process.Store(nil)
	return <-ended
}
