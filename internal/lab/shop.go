package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// Settings are a shop's settings and the teaching shop's own. Start from Default and change what differs.
type Settings struct {
	app.Settings `embed:""`

	Redlock   []string      `group:"Teaching" env:"SHOP_REDLOCK" placeholder:"ADDR,..." help:"An odd number of independent Redis servers, for the strategy of that name; without --redis, five in this process."`
	ZooKeeper string        `name:"zookeeper" group:"Teaching" env:"SHOP_ZOOKEEPER" placeholder:"ADDR" help:"ZooKeeper for the strategy of that name, host:port, several with commas."`
	Think     time.Duration `group:"Teaching" env:"SHOP_THINK" default:"0s" help:"Pause between reading stock and writing it, for orders that name none: 0s to 1s."`

	// ShortTTL is the TTL of the wrong locks that fail when the work takes longer than that; 0 means one that is
	// shorter than an order takes.
	ShortTTL time.Duration `kong:"-"`
}

// Default returns the settings of a command line without flags and environment variables: set Data or
// MySQL. Buyers have no limits.
func Default() Settings {
	s := Settings{Settings: app.Default()}
	s.RateLimit, s.MaxOpenOrders = 0, 0
	return s
}

// Check returns all errors of the settings, each with the name of its command-line flag. It contacts no server. Servers
// with TLS are refused, as production has them: wrong strategies sell what is not there.
func (s Settings) Check() error {
	errs := []error{app.Check(s.Settings, app.Hooks{Identify: identify, Handler: new(teaching).handler, Alone: s.Redis == ""})}
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if s.Think < 0 || s.Think > maxThink {
		fail("think: %v: want 0 to %v", s.Think, maxThink)
	}
	refuseTLS := func(name string, tls bool) {
		if tls {
			fail("%s: has TLS, as production's servers do; a teaching shop oversells on purpose: give it servers of its own", name)
		}
	}
	dsn, err := store.ReadDSN(s.MySQL)
	refuseTLS("mysql", s.MySQLTLS != app.TLSFiles{} || err == nil && dsn[0].TLS != nil)
	refuseTLS("redis", s.RedisTLS != app.TLSFiles{} || strings.HasPrefix(strings.ToLower(s.Redis), "rediss:"))
	for _, address := range s.Redlock {
		refuseTLS("redlock", strings.HasPrefix(strings.ToLower(address), "rediss:"))
		if _, err := app.RedisAddress(address); err != nil {
			fail("redlock: %w", err)
		}
	}
	if n := len(s.Redlock); n > 0 && (n < 3 || n%2 == 0) {
		fail("redlock: %d servers: want an odd number of them, 3 at least; five is usual", n)
	}
	if s.ZooKeeper != "" {
		for address := range strings.SplitSeq(s.ZooKeeper, ",") {
			errs = append(errs, app.CheckAddress("zookeeper", address))
		}
	}
	return errors.Join(errs...)
}

// Shop is a running teaching shop.
type Shop struct {
	*app.Shop
	stop func() error // the Redis servers in this process
}

// Start is app.Start of a teaching shop.
func Start(ctx context.Context, s Settings) (_ *Shop, err error) {
	if err := s.Check(); err != nil {
		return nil, app.UsageError{Err: err}
	}
	shop := &Shop{stop: func() error { return nil }}
	if s.OperatorToken.IsZero() {
		s.OperatorToken = auth.RandomSecret()
	}
	s.BuyersPay = true
	if s.MySQL != "" { // a request that is stepped keeps its transaction open for as long as its reader thinks
		separator := "?"
		if strings.Contains(s.MySQL[strings.LastIndex(s.MySQL, "/")+1:], "?") { // the password may have one
			separator = "&"
		}
		s.MySQL += separator + "wait_timeout=28800"
	}
	alone := s.Redis == ""
	if alone {
		addrs, stop, err := StartEmbedded(1 + 5)
		if err != nil {
			return nil, err
		}
		s.Redis, shop.stop = addrs[0], stop
		if len(s.Redlock) == 0 {
			s.Redlock = addrs[1:]
		}
	}
	l := &teaching{settings: s, recorder: new(Recorder)}
	hooks := app.Hooks{
		Identify: identify,
		Database: l.recorder.Database,
		Redis:    l.recorder.Redis(),
		Observer: l.recorder.Lock,
		Store:    Store,
		Locker:   Locker,
		Batch:    batches,
		Orders:   func(next httpapi.Orders) httpapi.Orders { return chosenOrders{next, l} },
		Handler:  l.handler,
		Strategy: l.open,
		Alone:    alone,
	}
	if shop.Shop, err = app.Start(ctx, s.Settings, hooks); err != nil {
		return nil, errors.Join(err, shop.stop())
	}
	return shop, nil
}

// Shutdown shuts the shop down as app.Shop does, and then stops the Redis servers in this process.
func (s *Shop) Shutdown(ctx context.Context) error {
	return errors.Join(s.Shop.Shutdown(ctx), s.stop())
}

// teaching wraps the parts of a shop.
type teaching struct {
	settings Settings
	recorder *Recorder

	*app.Parts // once they are open
	lockers    map[string]strategy.Locker
	offers     []Offer

	database, redis string // names and versions
}

// batches returns the config of a seller whose batches are in the traces of all their requests. A request that is
// stepped keeps its rows locked for as long as its leases: others wait for either as long.
func batches(c batch.Config) batch.Config {
	c.Patience, c.Share = c.LeaseWait, Share
	return c
}

// RedisVersion returns, for example, "Redis 8.0.2" or "Valkey 9.0.0". A server may forbid INFO, and the embedded one
// has no version.
func RedisVersion(ctx context.Context, client redis.UniversalClient) string {
	info := client.InfoMap(ctx, "server")
	if version := info.Item("Server", "valkey_version"); version != "" {
		return "Valkey " + version // it also has a redis_version
	}
	if version := info.Item("Server", "redis_version"); version != "" {
		return "Redis " + version
	}
	return "Redis protocol, version unknown"
}

// StartEmbedded starts n independent servers of the Redis protocol inside this process, each on a free port of the
// loopback interface. Shut down the shops before calling stop.
func StartEmbedded(n int) (addrs []string, stop func() error, err error) {
	var servers []*miniredis.Miniredis
	stop = func() error {
		for _, server := range servers {
			server.Close()
		}
		return nil
	}
	for range n {
		server := miniredis.NewMiniRedis()
		if err := server.StartAddr("127.0.0.1:0"); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("start the Redis-protocol server: %w", err), stop())
		}
		server.ClockTTL(true) // keys expire by the clock
		servers = append(servers, server)
		addrs = append(addrs, server.Addr())
	}
	return addrs, stop, nil
}
