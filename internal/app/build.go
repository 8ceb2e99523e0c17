package app

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// components are the parts of a running shop, in the order in which they are opened. Each shop has its own, also if
// several run in one process.
type components struct {
	log      *slog.Logger
	closers  []func() error
	metrics  *observe.Metrics
	traces   *observe.Traces // nil: off
	database *store.Store
	redis    redis.UniversalClient // nil: the locks and limits are in this process
	leases   lock.Backend
	locker   *lock.Locker
	orders   *order.Service
}

// open opens all components. The caller has to close what it returns, even with an error.
func open(ctx context.Context, s Settings) (*components, error) {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	c := &components{log: s.log(), metrics: observe.NewMetrics(ThisBuild())}
	for _, step := range []func(context.Context, Settings) error{c.openTraces, c.openDatabase, c.openLocker, c.openOrders} {
		if err := step(ctx, s); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *components) openTraces(ctx context.Context, _ Settings) (err error) {
	c.traces, err = observe.StartTraces(ctx, ThisBuild().Version)
	if c.traces == nil || err != nil {
		return err
	}
	c.onClose("traces", func() error { c.traces.Close(); return nil })
	return nil
}

func (c *components) openDatabase(ctx context.Context, s Settings) (err error) {
	if s.MySQL == "" {
		release, err := keepFolder(s.Data, s.Redis != "" && !s.Hooks.Alone)
		if err != nil {
			return err
		}
		c.onClose("data folder", release)
	}
	o := store.Options{Through: sql.OpenDB}
	if c.traces != nil {
		system := "mysql"
		if s.MySQL == "" {
			system = "sqlite"
		}
		o.Through = c.traces.Database(system)
	}
	if wrap := s.Hooks.Database; wrap != nil {
		o.Through = wrap(o.Through)
	}
	if c.database, err = openStore(ctx, s.DatabaseSettings, o); err != nil {
		return err
	}
	c.onClose("database", c.database.Close)
	if err := Prepare(ctx, c.database); err != nil {
		return err
	}
	c.metrics.Database(c.database.DB())
	c.metrics.Primary(c.database.Hosts(), c.database.Primary)
	return c.database.Writable(ctx) // a server that is read-only, or a missing right, is not waited for
}

// openLocker opens the lock that all instances share: in Redis or, without one, in this process.
func (c *components) openLocker(ctx context.Context, s Settings) (err error) {
	if s.Redis == "" {
		c.leases = lock.NewMemory()
	} else {
		if c.redis, err = c.openRedis(ctx, s, s.Redis); err != nil {
			return err
		}
		c.metrics.Redis(c.redis)
		if c.traces != nil {
			if err := c.traces.Redis(c.redis); err != nil {
				return err
			}
		}
		c.leases = lock.NewRedis(c.redis)
		if err := leaseCheck(c.leases, s.Redis)(ctx); permanent(err) { // a replica, or a missing right
			return err
		}
	}
	c.locker = c.newLocker(s, strategy.SharedLock, c.leases)
	return nil
}

// newLocker opens a locker with metrics under its name.
func (c *components) newLocker(s Settings, name string, b lock.Backend) *lock.Locker {
	observer := c.metrics.Lock(name)
	if wrap := s.Hooks.Observer; wrap != nil {
		observer = wrap(observer)
	}
	locker := lock.New(b, lock.Options{TTL: s.LockTTL, MaxWait: s.LockWait, Observer: observer})
	c.metrics.Queue(name, locker.Queued)
	c.onClose("locker "+name, locker.Close)
	return locker
}

// openOrders builds the seller and the order service from the other components.
func (c *components) openOrders(ctx context.Context, s Settings) error {
	sell := strategy.Shop{
		Store:   c.database,
		MaxOpen: limit(s.MaxOpenOrders, maxOpen),
		// Enough time for a slow COMMIT, and little enough that orders can be sold under a short lease.
		CommitTime: s.LockTTL / 10,
	}
	if wrap := s.Hooks.Store; wrap != nil {
		sell.Store = wrap(sell.Store)
	}
	locker := strategy.LockerOf(c.locker)
	if wrap := s.Hooks.Locker; wrap != nil {
		locker = wrap(locker)
	}
	parts := Parts{Settings: s, Database: c.database, Redis: c.redis, Shop: sell, Locker: locker, components: c}
	if s.Strategy == "batch" {
		parts.Seller = parts.NewSeller("batch", nil)
	} else {
		parts.Seller = parts.NewSeller("lanes", locker)
	}
	by := strategy.New(s.Strategy, sell, parts.Seller, locker)
	if other := s.Hooks.Strategy; other != nil {
		var err error
		if by, err = other(ctx, parts); err != nil {
			return err
		}
	}
	c.orders = order.New(order.Config{
		Store:     c.database,
		Strategy:  by,
		Ends:      parts.Seller,
		Hold:      s.PayWithin,
		Extension: s.PayExtension,
		OnLag:     c.metrics.Job(expiryJob).Lags,
	})
	return nil
}

// NewSeller opens a seller with metrics under its name. locker takes its leases; nil for none.
func (p Parts) NewSeller(name string, locker strategy.Locker) *batch.Seller {
	c := p.components
	outage := &observe.Outage{Log: c.log, Message: "orders are sold without leases"}
	config := batch.Config{
		Shop:      p.Shop,
		Locker:    locker,
		LeaseWait: p.LeaseWait,
		OnBatch:   c.metrics.Batch,
		OnLeases: func(err error) {
			c.metrics.Leases(err)
			outage.Note(context.Background(), err)
		},
		OnPanic: func(err error) { c.log.Error("batch panicked", "error", err) },
	}
	if c.traces != nil {
		config.Share, config.OnWait = c.traces.Share, c.traces.Waits
	}
	if wrap := p.Hooks.Batch; wrap != nil {
		config = wrap(config)
	}
	seller := batch.New(config)
	c.metrics.Queue(name, seller.Queued)
	c.onClose(name, func() error { seller.Close(); return nil })
	return seller
}

// onClose registers how a component is closed.
func (c *components) onClose(name string, shut func() error) {
	c.closers = append(c.closers, func() error {
		if err := shut(); err != nil {
			return fmt.Errorf("close %s: %w", name, err)
		}
		return nil
	})
}

// close closes what is open, the last first, so that each component can still use those that it was built on: a seller's
// leader releases its leases, and a locker returns its leases to Redis.
func (c *components) close() error {
	var errs []error
	for _, shut := range slices.Backward(c.closers) {
		errs = append(errs, shut())
	}
	return errors.Join(errs...)
}

// handlers returns the buyers' API and the operator's.
func (c *components) handlers(s Settings, draining func() bool) (buyers, operator http.Handler) {
	config := httpapi.Config{
		Orders:   c.orders,
		Payments: c.orders,
		Records:  c.database,
		Stock:    c.database,

		Identify:      s.Hooks.Identify,
		OperatorToken: s.OperatorToken,
		PaymentsToken: s.PaymentsToken,
		BuyersPay:     s.BuyersPay,

		Checks:   []httpapi.Check{c.check("database", false, c.database.Writable)},
		Draining: draining,

		MaxInFlight:     s.MaxInFlight,
		Timeout:         s.requestTimeout(),
		OperatorTimeout: operatorTimeout,

		Log:      c.log,
		Observer: c.metrics,
		Metrics:  c.metrics.Handler(),
	}
	if s.Redis != "" {
		config.Checks = append(config.Checks, c.check("redis", s.Strategy != "redis", leaseCheck(c.leases, s.Redis)))
	}
	if len(c.database.Hosts()) > 1 {
		config.Primary = func() string {
			host, _, _ := c.database.Primary()
			return host
		}
	}
	if c.traces != nil {
		config.Trace = c.traces.HTTP(httpapi.IsHealthCheck)
	}
	if rate := limit(s.RateLimit, rateLimit); rate > 0 {
		shared := c.redis
		if s.Hooks.Alone { // the Redis in a process never forgets that a key was there
			shared = nil
		}
		config.Limiter = httpapi.NewLimiter(shared, rate, c.log)
	}
	if !s.TokenSecret.IsZero() {
		config.Buyers = auth.New(s.TokenSecret)
	}
	if wrap := s.Hooks.Orders; wrap != nil {
		config.Orders = wrap(config.Orders)
	}
	buyers, operator = httpapi.New(config), httpapi.NewOperator(config)
	if wrap := s.Hooks.Handler; wrap != nil {
		buyers = wrap(buyers, operator)
	}
	return buyers, operator
}

// leaseCheck takes a lease on a key of this instance alone, as an order does on its SKUs. The next check takes it again.
func leaseCheck(leases lock.Backend, address string) func(context.Context) error {
	claim := lock.Claim{Key: "ready:" + rand.Text(), Owner: "ready", TTL: 2 * time.Second}
	servers, _ := RedisAddress(address)
	return func(ctx context.Context) error {
		if _, err := leases.Acquire(ctx, claim); err != nil {
			return fmt.Errorf("redis at %s: %w", servers, err)
		}
		return nil
	}
}

// check is the readiness check of a server, an optional one if orders are sold without it as well. It logs when the server
// stops and starts to do its part of an order.
func (c *components) check(server string, optional bool, try func(context.Context) error) httpapi.Check {
	outage := &observe.Outage{Log: c.log.With("server", server), Message: "no order can be taken, so the shop is not ready"}
	if optional {
		outage.Message = "orders are sold without this server"
	}
	return httpapi.Check{Name: server, Optional: optional, Try: func(ctx context.Context) error {
		err := try(ctx)
		outage.Note(ctx, err)
		return err
	}}
}

// Hooks are how a program changes a shop. Most wrap a part; Identify and Strategy replace one, as internal/lab does.
type Hooks struct {
	// Identify returns the buyer that sends a request below /v1/orders, and replaces tokens: the shop needs no TokenSecret, and
	// takes passwords that are published. An error that is an httpapi.ErrMalformed is a 400.
	Identify func(*http.Request) (buyer string, err error)

	Database func(open func(driver.Connector) *sql.DB) func(driver.Connector) *sql.DB // what makes a pool of connections
	Redis    redis.Hook                                                               // of each client
	Observer func(lock.Observer) lock.Observer                                        // of each locker
	Store    func(order.Store) order.Store
	Locker   func(strategy.Locker) strategy.Locker
	Batch    func(batch.Config) batch.Config
	Orders   func(httpapi.Orders) httpapi.Orders
	Handler  func(buyers, operator http.Handler) http.Handler // of the buyers' listener; it may show OperatorToken

	// Strategy returns the strategy to sell by instead of Settings.Strategy. It is called when all parts but the HTTP API
	// are open.
	Strategy func(context.Context, Parts) (order.Strategy, error)

	// Alone says that the Redis belongs to this process, also where Settings.Redis does not name it yet: the strategy redis is
	// allowed, rate limits stay in the process, and no second shop may serve the data folder.
	Alone bool
}

// Parts are the open parts of a shop that is about to serve. The shop closes them.
type Parts struct {
	Settings
	Database *store.Store
	Redis    redis.UniversalClient // nil without Settings.Redis
	Shop     strategy.Shop
	Seller   *batch.Seller   // under leases, unless the strategy is batch
	Locker   strategy.Locker // the one that the instances share

	components *components
}

// NewLocker opens a locker with metrics under its name.
func (p Parts) NewLocker(name string, b lock.Backend) *lock.Locker {
	return p.components.newLocker(p.Settings, name, b)
}

// OpenRedis returns a client of a further Redis that has answered.
func (p Parts) OpenRedis(ctx context.Context, address string) (redis.UniversalClient, error) {
	return p.components.openRedis(ctx, p.Settings, address)
}

// OnClose registers what is to be closed with the shop, before what was opened earlier.
func (p Parts) OnClose(name string, shut func() error) { p.components.onClose(name, shut) }
