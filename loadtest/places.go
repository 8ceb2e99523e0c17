package main

import (
	"context"
	"fmt"
	"log/slog"

	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/servers"
	"example.com/shop/loadtest/shops"
)

// docker is the value of --servers that starts containers.
const docker = "docker"

// places are where the shops that are started keep things.
type places struct {
	MySQL     string   `name:"mysql" placeholder:"DSN" help:"Let the shops that are started use this MySQL or MariaDB: user:password@tcp(host:3306)/database. It is migrated and gains SKUs and orders: use one for tests."`
	Redis     string   `placeholder:"ADDR" help:"Let the shops that are started use this Redis: host:port or redis:// URL."`
	Redlock   []string `placeholder:"ADDR,..." help:"Let them use these Redis for redlock: an odd number of servers that know nothing of each other. Without it and without --redis, five embedded ones."`
	ZooKeeper string   `name:"zookeeper" placeholder:"ADDR" help:"Let them use this ZooKeeper: host:port, several with commas."`
	Servers   string   `enum:"embedded,docker" default:"embedded" help:"Where servers come from that are not named: embedded in this process, as far as that can be, or docker, which starts MySQL, six Redis and a ZooKeeper in containers and removes them at the end."`
}

// named reports whether servers of the user's own are to be used.
func (p places) named() bool {
	return p.MySQL != "" || p.Redis != "" || len(p.Redlock) > 0 || p.ZooKeeper != ""
}

// whereabouts are the flags that name them again, without addresses.
func (p places) whereabouts() []string {
	if p.Servers == docker {
		return []string{"--servers", docker}
	}
	var words []string
	for _, place := range []struct {
		named         bool
		flag, address string
	}{
		{p.MySQL != "", "--mysql", "DSN"},
		{p.Redis != "", "--redis", "ADDR"},
		{len(p.Redlock) > 0, "--redlock", "ADDR,..."},
		{p.ZooKeeper != "", "--zookeeper", "ADDR"},
	} {
		if place.named {
			words = append(words, place.flag, place.address)
		}
	}
	return words
}

// conflict tells what excludes what; it is empty if nothing does.
func (p places) conflict() string {
	if p.Servers == docker && p.named() {
		return "--servers docker starts all servers; leave out --mysql, --redis, --redlock and --zookeeper"
	}
	return ""
}

// checkServers reads the addresses of servers without asking them.
func (p places) checkServers() error {
	if err := p.shops(0, nil).Check(); err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	return nil
}

// shops are instances that keep things there.
func (p places) shops(count int, log *slog.Logger) shops.Instances {
	return shops.Instances{Count: count, MySQL: p.MySQL, Redis: p.Redis, Redlock: p.Redlock, ZooKeeper: p.ZooKeeper, Log: log}
}

// start starts the containers, if they are asked for, and names them. stop removes
// them.
func (p *places) start(ctx context.Context, tell func(string)) (stop func() error, err error) {
	if p.Servers != docker {
		return func() error { return nil }, nil
	}
	started, err := servers.Start(ctx, tell)
	if err != nil {
		return nil, fmt.Errorf("--servers docker: %w", err)
	}
	p.MySQL, p.Redis, p.Redlock, p.ZooKeeper = started.MySQL, started.Redis, started.Redlock, started.ZooKeeper
	return started.Close, nil
}
