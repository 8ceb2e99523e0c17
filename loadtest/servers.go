package main

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/shops"
)

// docker is the value of --servers that starts containers.
const docker = "docker"

// serverFlags are the servers of the shops that are started.
type serverFlags struct {
	MySQL     string   `name:"mysql" placeholder:"DSN" help:"Let the shops that are started use this MySQL or MariaDB: user:password@tcp(host:3306)/database. It is migrated and gains SKUs and orders: use one for tests."`
	Redis     string   `placeholder:"ADDR" help:"Let the shops that are started use this Redis: host:port or redis:// URL."`
	Redlock   []string `placeholder:"ADDR,..." help:"Let them use these Redis for redlock: an odd number of servers that know nothing of each other. Without it and without --redis, five embedded ones."`
	ZooKeeper string   `name:"zookeeper" placeholder:"ADDR" help:"Let them use this ZooKeeper: host:port, several with commas."`
	Servers   string   `enum:"embedded,docker" default:"embedded" help:"Where servers come from that are not named: embedded in this process, as far as that can be, or docker, which starts MySQL, six Redis and a ZooKeeper in containers and removes them at the end."`
}

// checkServers reads the addresses without connecting.
func (f *serverFlags) checkServers() error {
	if f.Servers == docker && f.named() {
		return &flagError{want: "--servers docker starts all servers; leave out --mysql, --redis, --redlock and --zookeeper"}
	}
	if err := f.shops(0, nil).Check(); err != nil {
		return &flagError{want: err.Error()}
	}
	return nil
}

// named reports whether servers of the user's own are to be used.
func (f *serverFlags) named() bool {
	return f.MySQL != "" || f.Redis != "" || len(f.Redlock) > 0 || f.ZooKeeper != ""
}

// shops are instances that use these servers.
func (f *serverFlags) shops(count int, log *slog.Logger) shops.Instances {
	return shops.Instances{Count: count, MySQL: f.MySQL, Redis: f.Redis, Redlock: f.Redlock, ZooKeeper: f.ZooKeeper, Log: log}
}

// redlockNodes is with how many servers Redlock is usually described.
const redlockNodes = 5

// startServers starts the containers at the same time, if they are asked for, and notes their addresses. stop
// removes them.
func (f *serverFlags) startServers(ctx context.Context, tell func(string)) (stop func() error, err error) {
	if f.Servers != docker {
		return func() error { return nil }, nil
	}
	opens := []func(context.Context) (*testserver.Server, error){testserver.OpenMySQL, testserver.OpenZooKeeper}
	for range 1 + redlockNodes {
		opens = append(opens, testserver.OpenRedis)
	}
	tell(fmt.Sprintf("starting %d containers: MySQL, ZooKeeper and %d Redis", len(opens), 1+redlockNodes))
	all := make([]*testserver.Server, len(opens))
	stop = func() error {
		var stopping errgroup.Group
		for _, server := range all {
			if server != nil {
				stopping.Go(server.Close)
			}
		}
		return stopping.Wait()
	}
	starting, startCtx := errgroup.WithContext(ctx)
	for i, open := range opens {
		starting.Go(func() (err error) {
			all[i], err = open(startCtx)
			return err
		})
	}
	if err = starting.Wait(); err == nil {
		f.MySQL, err = all[0].NewSchema(ctx, "shop")
	}
	if err != nil {
		return nil, cleanup.Join(fmt.Errorf("--servers docker: %w", err), stop())
	}
	f.ZooKeeper, f.Redis = all[1].Addr(), all[2].Addr()
	for _, server := range all {
		tell(server.String())
	}
	for _, node := range all[3:] {
		f.Redlock = append(f.Redlock, node.Addr())
	}
	return stop, nil
}
