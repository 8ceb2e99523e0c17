// Package system is what the fault suite breaks: instances of the shop in processes of their own, the servers behind
// them, and the network between the two.
package system

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// Instances is how many shops there are.
const Instances = 3

const (
	readyLimit = time.Minute
)

// Kind is which servers there are.
type Kind string

// The kinds. All but Embedded run in containers, and have a Redis and what they are named after.
const (
	Embedded Kind = "embedded" // a SQLite file, and Redis' protocol in this process
	MySQL    Kind = "mysql"    // MySQL with durable commits
	Disk     Kind = "disk"     // MySQL on a small disk
	Group    Kind = "group"    // three MySQL in a group
	Replica  Kind = "replica"  // MySQL with an asynchronous replica, which may lose orders: a control
	Sentinel Kind = "sentinel" // MySQL, and a Redis with two replicas and three Sentinels
	Cluster  Kind = "cluster"  // MySQL, and a Redis Cluster of three masters with a replica each
)

// System is running shops and servers. One goroutine breaks it; clients may use the shops meanwhile.
type System struct {
	Kind       Kind
	Shops      []*Shop
	DB         *sql.DB // past all that can be broken, but for the servers themselves
	MySQL      []*Server
	Redis      *Server
	Group      *testserver.MySQLGroup
	RedisGroup *testserver.RedisGroup // of Sentinel and Cluster

	dsn string          // of DB
	ctx context.Context //nolint:containedctx // of Close, which an interrupt does not end
	shops.Undo
}

// Open starts shops on servers of a kind. They take turns to sell by the strategies. Patient ones keep the shop's own time limits, so that a busy machine
// breaks no lease.
func Open(ctx context.Context, kind Kind, program shops.Program, strategies []string, patient bool) (s *System, err error) {
	s = &System{Kind: kind, ctx: context.WithoutCancel(ctx)}
	for i := range Instances {
		strategy := strategies[i%len(strategies)]
		s.Shops = append(s.Shops, &Shop{program: program, strategy: strategy, patient: patient, name: fmt.Sprint("shop ", i+1)})
	}
	for _, open := range []func(context.Context) error{s.openMySQL, s.openRedis, s.openDatabase, s.openShops, s.AwaitReady} {
		if err = open(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("start shops on %s: %w", kind, err), s.Close())
		}
	}
	return s, nil
}

// Close stops all: the shops together, then the rest, the last first.
func (s *System) Close() error {
	errs := make([]error, len(s.Shops))
	var all sync.WaitGroup
	for i, shop := range s.Shops {
		all.Go(func() { errs[i] = shop.Stop(s.ctx) })
	}
	all.Wait()
	return errors.Join(append(errs, s.Undo.Close())...)
}

// AwaitReady returns when all shops are ready to sell.
func (s *System) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	conns := shopclient.NewConnections(1, 5*time.Second)
	defer conns.CloseIdleConnections()
	for _, shop := range s.Shops {
		for {
			err := errors.New("it was stopped")
			if client := shop.Client(conns); client != nil {
				err = client.Ready(ctx)
			}
			if err == nil {
				break
			}
			if !shopclient.Pause(ctx, 20*time.Millisecond) {
				return fmt.Errorf("%s is not ready: %w", shop.name, err)
			}
		}
	}
	return nil
}

// openMySQL starts the database servers of the kind, with a link from each shop to each of them.
func (s *System) openMySQL(ctx context.Context) (err error) {
	var servers []*testserver.Server
	switch s.Kind {
	case Embedded:
		return nil
	case Group:
		if s.Group, err = testserver.OpenMySQLGroup(ctx); err == nil {
			s.Later(s.Group.Close)
			servers = s.Group.Servers
		}
	case Replica:
		var two *testserver.Ensemble
		if two, err = testserver.OpenMySQLReplica(ctx); err == nil {
			s.Later(two.Close)
			servers = two.Servers
		}
	case MySQL, Disk, Sentinel, Cluster:
		open := testserver.OpenMySQL
		if s.Kind == Disk {
			open = testserver.OpenMySQLSmallDisk
		}
		var one *testserver.Server
		if one, err = open(ctx); err == nil {
			s.Later(one.Close)
			servers = append(servers, one)
		}
	}
	if err == nil {
		s.dsn, err = servers[0].NewSchema(ctx, "shop", servers...)
	}
	if err != nil {
		return err
	}
	for _, server := range servers {
		s.MySQL = append(s.MySQL, newServer(server))
	}
	for _, shop := range s.Shops {
		var dsn string
		if dsn, shop.SQL, err = s.linkMySQL(ctx); err != nil {
			return err
		}
		shop.env = append(shop.env, "SHOP_MYSQL="+dsn+"&innodb_lock_wait_timeout=1")
	}
	s.dsn, _, err = s.linkMySQL(ctx) // a server that is started again may have another address
	return err
}

// linkMySQL returns links to all database servers and the data source name of these.
func (s *System) linkMySQL(ctx context.Context) (dsn string, links []*testserver.Link, err error) {
	dsn = s.dsn
	for _, server := range s.MySQL {
		link, err := s.link(ctx, server, true)
		if err != nil {
			return "", nil, err
		}
		links, dsn = append(links, link), strings.Replace(dsn, server.Addr(), link.Addr, 1)
	}
	return dsn, links, nil
}

// openRedis starts Redis, with a link from each shop. Sentinels and the nodes of a Cluster name addresses past a link.
func (s *System) openRedis(ctx context.Context) (err error) {
	if s.Kind == Sentinel || s.Kind == Cluster {
		open := testserver.OpenRedisSentinel
		if s.Kind == Cluster {
			open = testserver.OpenRedisCluster
		}
		if s.RedisGroup, err = open(ctx); err != nil {
			return err
		}
		s.Later(s.RedisGroup.Close)
		for _, shop := range s.Shops {
			shop.env = append(shop.env, "SHOP_REDIS="+s.RedisGroup.URL)
		}
		return nil
	}
	if s.Redis, err = s.startRedis(ctx); err != nil {
		return err
	}
	for _, shop := range s.Shops {
		if shop.Redis, err = s.link(ctx, s.Redis, false); err != nil {
			return err
		}
		shop.env = append(shop.env, "SHOP_REDIS="+shop.Redis.Addr)
	}
	return nil
}

func (s *System) startRedis(ctx context.Context) (*Server, error) {
	if s.Kind == Embedded {
		server := new(Server)
		err := server.Start(ctx)
		if err == nil {
			s.Later(func() error { return server.stop() })
		}
		return server, err
	}
	server, err := testserver.OpenRedis(ctx)
	if err != nil {
		return nil, err
	}
	s.Later(server.Close)
	return newServer(server), nil
}

func (s *System) link(ctx context.Context, server *Server, sql bool) (*testserver.Link, error) {
	link, err := testserver.NewLink(ctx, sql, server.Addr)
	if err == nil {
		s.Later(func() error { link.Close(); return nil })
	}
	return link, err
}

// openDatabase makes the tables.
func (s *System) openDatabase(ctx context.Context) error {
	settings := app.Default().DatabaseSettings
	settings.MySQL = s.dsn
	if s.Kind == Embedded {
		dir, err := os.MkdirTemp("", "shop-faults-")
		if err != nil {
			return err
		}
		s.Later(func() error { return os.RemoveAll(dir) })
		for _, shop := range s.Shops {
			shop.env = append(shop.env, "SHOP_DATA="+dir)
		}
		settings.Data = dir
	}
	database, err := app.OpenDatabase(ctx, settings)
	if err != nil {
		return err
	}
	s.Later(database.Close)
	s.DB = database.DB()
	_, err = database.Migrate(ctx)
	return err
}

func (s *System) openShops(ctx context.Context) error {
	for _, shop := range s.Shops {
		if err := shop.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}
