package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/app"
)

// address is a server's, which must not be typed empty: a script whose variable is
// not set would get a shop that shares nothing with the others.
type address string

// AfterApply refuses the empty one where it was typed.
func (a address) AfterApply(p *kong.Path) error {
	if a == "" && !p.Resolved {
		return fmt.Errorf("--%s: is empty: want an address, or leave it out", p.Flag.Name)
	}
	return nil
}

type serveCommand struct {
	Listen        string `default:"127.0.0.1:8080" help:"Address to serve on, host:port; without a host on all addresses, port 0 takes a free one." variable:"SHOP_LISTEN"`
	databaseFlags `embed:""`
	tokenFlags    `embed:""`
	operatorFlags `embed:""`
	Redis         address `placeholder:"ADDR" help:"Redis that keeps the locks and counts for the rate limits: host:port or a redis:// URL. Without it both are in this process, also with --mysql." variable:"SHOP_REDIS"`
	redisTLSFlags `embed:""`
	limitFlags    `embed:""`
	LockTTL       time.Duration `name:"lock-ttl" default:"10s" help:"How long a crashed instance keeps a SKU locked: 100ms to 10m." variable:"SHOP_LOCK_TTL"`
	LockWait      time.Duration `default:"15s" help:"How long an order waits for the lock of its SKU; more than --lock-ttl by a second at least, or buyers who come right after a crash give up too early. At most 15m." variable:"SHOP_LOCK_WAIT"`
	PayWithin     time.Duration `default:"15m" help:"How long an order holds its units unpaid; then it expires and they are for sale again: 1s to 720h." variable:"SHOP_PAY_WITHIN"`
	KeepKeys      time.Duration `default:"24h" help:"How long an Idempotency-Key is kept: a repeat within that time gets the first answer, a later one is a new request. 1h to 2160h." variable:"SHOP_KEEP_KEYS"`
	ReconcileAt   string        `default:"03:00" help:"When to audit all SKUs and log what differs, every day, on one of the instances: a time in UTC, or off." variable:"SHOP_RECONCILE_AT"`
	DrainDelay    time.Duration `default:"0s" help:"At the end: how long readiness fails before connections are refused, for load balancers; 0s refuses them at once, 15m at most." variable:"SHOP_DRAIN_DELAY"`
	Drain         time.Duration `default:"20s" help:"At the end: how long orders in flight may take: 1ms to 15m." variable:"SHOP_DRAIN"`
	Lab           bool          `help:"Teaching mode: requests choose their strategy, also one that oversells. Refused on servers with TLS, the only sign by which production is known." variable:"SHOP_LAB"`
	Redlock       []string      `placeholder:"ADDR,..." help:"Teaching mode: an odd number of Redis that know nothing of each other, for the strategy of that name; without --redis, five in this process." variable:"SHOP_REDLOCK"`
	ZooKeeper     string        `name:"zookeeper" placeholder:"ADDR" help:"Teaching mode: ZooKeeper for the strategy of that name, host:port, several with commas." variable:"SHOP_ZOOKEEPER"`
	Think         time.Duration `default:"0s" help:"Teaching mode: pause between reading stock and writing it: 0s to 1s." variable:"SHOP_THINK"`
}

// Help is shown below the flags.
func (serveCommand) Help() string {
	return `Without --mysql the shop keeps a SQLite file, in a temporary folder that is removed at the end or in --data DIR. Without --redis its locks and rate limits are in this process, also with --mysql; several instances need a Redis that they share. A variable that is set to nothing counts as absent. A new SQLite file gets three demo SKUs to sell, unless it has others (shop seed). SIGTERM or Ctrl-C: readiness fails, orders in flight finish, exit 0; a second one cuts them off.

Buyers show a token (see shop token --help); with --lab they name themselves: keep such a shop to yourself. The operator creates and restocks SKUs, audits, and reads metrics and profiles on a listener of its own, with a token of its own.

Without --mysql and --redis the shop makes both secrets and prints them in lines to paste; with --data they stay good, in token.secret and operator.token there. With one of them it wants --token-secret-file, and for the operator's API --operator-listen and --operator-token-file; the same secrets for all instances. A secret is 32 to 1024 printable ASCII characters, and none that is published.

GET /v1/strategies of a shop in teaching mode says which strategies it has the servers for: mysql-lock and for-update need --mysql, redlock and zookeeper the flags of that name.

The nightly audit leaves MySQL two minutes for each statement: for a large shop add readTimeout=1h to the DSN. One that fails is tried again by another instance at once, and by the same one an hour later.

OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 sends traces there; OpenTelemetry's other standard variables (OTEL_) count as well.

Examples:
  shop serve                       try it: nothing to install
  shop serve --data ./data         the same, and keep the orders and tokens
  shop serve --lab --think 2ms     let requests oversell, to see why
  (umask 077; openssl rand -base64 32 > token.secret; openssl rand -base64 32 > operator.token)
  shop serve --mysql 'shop:secret@tcp(db:3306)/shop' --mysql-ca ca.pem --redis redis:6379 --redis-ca ca.pem --listen :8080 --token-secret-file token.secret --operator-listen 127.0.0.1:8081 --operator-token-file operator.token

The last one talks TLS with both servers: whoever has another certificate, or none, is refused at the start.`
}

// Run serves until it is told to stop.
func (s *serveCommand) Run(ctx context.Context, p *program) (err error) {
	defer ballast()()
	second, stop := untilSecond(ctx, p.log)
	defer stop()
	place, err := s.place()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.close()) }()
	settings := s.settings(place)
	settings.Log = p.log
	if err := s.protect(place, &settings); err != nil {
		return err
	}
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
	if err := greet(p.stdout, greeting{shop.Addr(), shop.OperatorAddr(), settings, place, sample}); err != nil {
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
	settings.Redis = string(s.Redis)
	settings.Lab, settings.Think = s.Lab, s.Think
	settings.Redlock, settings.ZooKeeper = s.Redlock, s.ZooKeeper
	settings.LockTTL, settings.LockWait = s.LockTTL, s.LockWait
	settings.Hold = s.PayWithin
	settings.KeepKeys = s.KeepKeys
	settings.ReconcileAt = s.ReconcileAt
	settings.DrainDelay, settings.DrainTimeout = s.DrainDelay, s.Drain
	if settings.MySQL == "" {
		settings.SQLite = app.DatabaseFile(at.dir)
	}
	settings.RedisTLS = s.redisTLS()
	s.limit(&settings)
	if at.embedded != nil {
		settings.Redis, settings.RedisEmbedded = at.embedded.Redis(), true
	}
	if at.redlock != nil {
		settings.Redlock = at.redlock
	}
	return settings
}
