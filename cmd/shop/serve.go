package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/app"
)

type serveCommand struct {
	Listen        string `default:"127.0.0.1:8080" help:"Address to serve on, host:port; without a host on all addresses, port 0 takes a free one." variable:"SHOP_LISTEN"`
	databaseFlags `embed:""`
	Redis         string        `placeholder:"ADDR" help:"Redis that keeps the locks: host:port or a redis:// URL." variable:"SHOP_REDIS"`
	LockTTL       time.Duration `name:"lock-ttl" default:"10s" help:"How long a crashed instance keeps a SKU locked." variable:"SHOP_LOCK_TTL"`
	LockWait      time.Duration `default:"15s" help:"How long an order waits for the lock of its SKU; more than --lock-ttl by a second at least, or buyers who come right after a crash give up too early." variable:"SHOP_LOCK_WAIT"`
	DrainDelay    time.Duration `default:"0s" help:"At the end: how long readiness fails before connections are refused, for load balancers; 0s refuses them at once." variable:"SHOP_DRAIN_DELAY"`
	Drain         time.Duration `default:"20s" help:"At the end: how long orders in flight may take." variable:"SHOP_DRAIN"`
	Lab           bool          `help:"Teaching mode: requests choose their strategy, also one that oversells. Refused on servers with TLS, the only sign by which production is known." variable:"SHOP_LAB"`
	Think         time.Duration `default:"0s" help:"Teaching mode: pause between reading stock and writing it." variable:"SHOP_THINK"`
}

// Help is shown below the flags.
func (serveCommand) Help() string {
	return `Without --mysql the shop keeps a SQLite file, in a temporary folder that is removed at the end or in --data DIR. Without --redis it runs a lock server of its own; several instances need one they share. SIGTERM or Ctrl-C: readiness fails, orders in flight finish, exit 0; a second one cuts them off.

Examples:
  shop serve                                   try it: nothing to install
  shop serve --data ./data                     the same, and keep the orders
  shop serve --lab --think 2ms                 let requests oversell, to see why
  shop serve --mysql 'shop:secret@tcp(db:3306)/shop' --redis redis:6379 --listen :8080`
}

// Run serves until it is told to stop.
func (s *serveCommand) Run(ctx context.Context, p *program) (err error) {
	second, stop := untilSecond(ctx)
	defer stop()
	place, err := s.place()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.close()) }()
	settings := s.settings(place)
	settings.Log = p.log
	if err := settings.Validate(); err != nil {
		return usage("serve", err)
	}
	var sample string
	if settings.SQLite != "" {
		if sample, err = seedDemo(ctx, settings); err != nil {
			return err
		}
	}
	shop, err := app.Start(ctx, settings)
	if err != nil {
		return err
	}
	if err := greet(p.stdout, shop.Addr(), settings.Lab, place, sample); err != nil {
		return errors.Join(err, shop.Shutdown(context.WithoutCancel(ctx)))
	}
	select {
	case <-ctx.Done():
	case <-shop.Done():
	}
	// The drain timeout limits it; the signal has ended ctx already.
	if err := shop.Shutdown(second); err != nil {
		return fmt.Errorf("close the shop: %w", err)
	}
	if second.Err() != nil {
		return context.Cause(second)
	}
	return shop.Err()
}

// settings turns flags into the settings of a shop at a place.
func (s *serveCommand) settings(at *place) app.Settings {
	settings := s.databaseFlags.settings()
	settings.Listen = s.Listen
	settings.Redis = s.Redis
	settings.Lab, settings.Think = s.Lab, s.Think
	settings.LockTTL, settings.LockWait = s.LockTTL, s.LockWait
	settings.DrainDelay, settings.DrainTimeout = s.DrainDelay, s.Drain
	if settings.MySQL == "" {
		settings.SQLite = app.DatabaseFile(at.dir)
	}
	if at.embedded != nil {
		settings.Redis = at.embedded.Redis()
	}
	return settings
}
