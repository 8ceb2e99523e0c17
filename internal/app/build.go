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
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// Parts are the open parts of a shop, in the order in which they were opened. The shop closes them.
type Parts struct {
	Settings
	Database *store.Store
	Redis    redis.UniversalClient // nil without Settings.Redis: locks and limits are in this process
	Shop     strategy.Shop
	Seller   *batch.Seller   // sells under leases, unless the strategy is batch
	Locker   strategy.Locker // shared by all instances

	hooks     Hooks
	log       *slog.Logger
	closers   []func() error
	metrics   *observe.Metrics
	traces    *observe.Traces // nil without traces
	lockStore lock.Backend
	locker    *lock.Locker
	orders    *order.Service
}

// open opens all parts. The caller must close the returned Parts, even after an error.
func open(ctx context.Context, s Settings, h Hooks) (_ *Parts, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	version, commit := ThisBuild()
	p := &Parts{Settings: s, hooks: h, log: s.log(), metrics: observe.NewMetrics(version, commit)}
	if h.Spans != nil {
		if p.traces, err = observe.StartTraces(ctx, h.Spans, version); err != nil {
			return p, err
		}
		p.OnClose("traces", func() error { p.traces.Close(); return nil })
	}
	for _, step := range []func(context.Context) error{p.openDatabase, p.openLocker, p.openOrders} {
		if err := step(ctx); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *Parts) openDatabase(ctx context.Context) (err error) {
	system := "mysql"
	if p.MySQL == "" {
		system = "sqlite"
		release, err := keepFolder(p.Data, p.Settings.Redis != "" && !p.hooks.Alone)
		if err != nil {
			return err
		}
		p.OnClose("data folder", release)
	}
	o := store.Options{Through: sql.OpenDB}
	if p.traces != nil {
		o.Through = p.traces.Database(system)
	}
	o.Through = wrapped(o.Through, p.hooks.Database)
	// A read-only server or a missing privilege fails the start at once.
	writable := func(ctx context.Context, db *store.Store) error { return db.Writable(ctx) }
	if p.Database, err = openStore(ctx, p.DatabaseSettings, o, Prepare, writable); err != nil {
		return err
	}
	p.OnClose("database", p.Database.Close)
	p.metrics.Database("shop", p.Database.DB())
	if batches := p.Database.Sharing().DB(); batches != p.Database.DB() {
		p.metrics.Database("shop_batches", batches)
	}
	p.metrics.Primary(p.Database.Hosts(), p.Database.Primary)
	return nil
}

// openLocker opens the lock that all instances share: in Redis or, without a Redis, in this process.
func (p *Parts) openLocker(ctx context.Context) (err error) {
	if address := p.Settings.Redis; address == "" {
		p.lockStore = lock.NewMemory()
	} else {
		if p.Redis, err = p.OpenRedis(ctx, address); err != nil {
			return err
		}
		p.metrics.Redis(p.Redis)
		if p.traces != nil {
			if err := p.traces.Redis(p.Redis); err != nil {
				return err
			}
		}
		p.lockStore = lock.NewRedis(p.Redis)
		if err := leaseCheck(p.lockStore, address)(ctx); permanent(err) { // a replica, or a missing privilege
			return err
		}
	}
	p.locker = p.NewLocker(strategy.SharedLock, p.lockStore)
	p.Locker = wrapped(strategy.LockerOf(p.locker), p.hooks.Locker)
	return nil
}

// NewLocker opens a locker with metrics under its name.
func (p *Parts) NewLocker(name string, b lock.Backend) *lock.Locker {
	observer := wrapped(p.metrics.Lock(name), p.hooks.Observer)
	locker := lock.New(b, lock.Options{TTL: p.LockTTL, MaxWait: p.LockWait, Observer: observer})
	p.metrics.Queue(name, locker.Queued)
	p.OnClose("locker "+name, locker.Close)
	return locker
}

func (p *Parts) openOrders(ctx context.Context) (err error) {
	p.Shop = strategy.Shop{
		Store:   wrapped[order.Store](p.Database, p.hooks.Store),
		MaxOpen: p.MaxOpenOrders,
		// Long enough for a slow COMMIT, and short enough to sell under a short lease.
		CommitTime: p.LockTTL / 10,
	}
	if p.Strategy == "batch" {
		p.Seller = p.NewSeller("batch", nil)
	} else {
		p.Seller = p.NewSeller("lanes", p.Locker)
	}
	by, err := strategy.New(p.Strategy, p.Shop, p.Seller, p.Locker)
	if other := p.hooks.Strategy; other != nil {
		by, err = other(ctx, p)
	}
	if err != nil {
		return err
	}
	p.orders = order.New(order.Config{
		Store:     p.Database,
		Strategy:  by,
		Ends:      p.Seller,
		Hold:      p.PayWithin,
		Extension: p.PayExtension,
		OnLag:     p.metrics.Job(expiryJob).Lags,
	})
	return nil
}

// NewSeller opens a seller with metrics under its name. The seller takes leases from locker; nil for none.
func (p *Parts) NewSeller(name string, locker strategy.Locker) *batch.Seller {
	outage := &observe.Outage{Log: p.log, Message: "orders are sold without leases"}
	config := batch.Config{
		Shop:      p.Shop,
		Locker:    locker,
		LeaseWait: p.LeaseWait,
		OnBatch:   p.metrics.Batch,
		OnLeases: func(err error) {
			p.metrics.Leases(err)
			outage.Note(context.Background(), err)
		},
	}
	config.Store = wrapped[order.Store](p.Database.Sharing(), p.hooks.Store)
	if p.traces != nil {
		config.Share = p.traces.Share
	}
	seller := batch.New(wrapped(config, p.hooks.Batch))
	p.metrics.Queue(name, seller.Queued)
	p.OnClose(name, func() error { seller.Close(); return nil })
	return seller
}

// OnClose registers a part to close with the shop. Parts close in reverse order.
func (p *Parts) OnClose(name string, shut func() error) {
	p.closers = append(p.closers, func() error {
		if err := shut(); err != nil {
			return fmt.Errorf("close %s: %w", name, err)
		}
		return nil
	})
}

// close closes the open parts, the last first, so that each part can still use the parts below it: a seller's leader
// releases its leases, and a locker returns its leases to Redis.
func (p *Parts) close() error {
	var errs []error
	for _, shut := range slices.Backward(p.closers) {
		errs = append(errs, shut())
	}
	return errors.Join(errs...)
}

func (p *Parts) handlers(draining func() bool) (buyers, operator http.Handler) {
	config := httpapi.Config{
		Orders: wrapped[httpapi.Orders](p.orders, p.hooks.Orders),
		Store:  p.Database,

		Identify:      p.hooks.Identify,
		OperatorToken: p.OperatorToken,
		PaymentsToken: p.PaymentsToken,
		BuyersPay:     p.BuyersPay,

		Checks:   []httpapi.Check{p.check("database", false, p.Database.Writable)},
		Draining: draining,

		MaxInFlight:     p.MaxInFlight,
		Timeout:         p.requestTimeout(),
		OperatorTimeout: operatorTimeout,

		Log:      p.log,
		Observer: p.metrics,
		Metrics:  p.metrics.Handler(),
	}
	if p.Settings.Redis != "" {
		config.Checks = append(config.Checks, p.check("redis", p.Strategy != "redis", leaseCheck(p.lockStore, p.Settings.Redis)))
	}
	if len(p.Database.Hosts()) > 1 {
		config.Primary = p.Database.Primary
	}
	if p.traces != nil {
		config.Trace = p.traces.HTTP(httpapi.IsHealthCheck)
	}
	if p.RateLimit > 0 {
		config.Limiter = httpapi.NewLimiter(p.Redis, p.RateLimit, p.log)
	}
	if !p.TokenSecret.IsZero() {
		config.Buyers = auth.New(p.TokenSecret)
	}
	buyers, operator = httpapi.New(config), httpapi.NewOperator(config)
	if wrap := p.hooks.Handler; wrap != nil {
		buyers = wrap(buyers, operator)
	}
	return buyers, operator
}

// leaseCheck returns a check that takes a lease as an order does, on a key of this instance, again and again.
func leaseCheck(backend lock.Backend, address string) func(context.Context) error {
	claim := lock.Claim{Key: "ready:" + rand.Text(), Owner: "ready", TTL: 2 * time.Second}
	servers, _ := RedisAddress(address)
	return func(ctx context.Context) error {
		if _, err := backend.Acquire(ctx, claim); err != nil {
			return fmt.Errorf("redis at %s: %w", servers, err)
		}
		return nil
	}
}

// check returns the readiness check of a server. The check is optional if orders can be sold without the server. It
// logs when the server fails and when it works again.
func (p *Parts) check(server string, optional bool, try func(context.Context) error) httpapi.Check {
	outage := &observe.Outage{Log: p.log.With("server", server), Message: "the server cannot take orders, so the shop is not ready"}
	if optional {
		outage.Message = "orders are sold without this server"
	}
	return httpapi.Check{Name: server, Optional: optional, Try: func(ctx context.Context) error {
		err := try(ctx)
		outage.Note(ctx, err)
		return err
	}}
}

// wrapped returns the part that a hook makes of this one, or the part itself if there is no hook.
func wrapped[T any](part T, hook func(T) T) T {
	if hook == nil {
		return part
	}
	return hook(part)
}

// Hooks let a program change a shop, as internal/lab does. Most hooks wrap a part; Identify and Strategy replace one.
type Hooks struct {
	// Identify returns the buyer of a request below /v1/orders. It replaces tokens: the shop needs no TokenSecret, and
	// accepts published passwords. An httpapi.ErrMalformed is answered with a 400.
	Identify func(*http.Request) (buyer string, err error)

	Database func(open func(driver.Connector) *sql.DB) func(driver.Connector) *sql.DB // makes a pool of connections
	Redis    redis.Hook                                                               // of each client
	Observer func(lock.Observer) lock.Observer                                        // of each locker
	Store    func(order.Store) order.Store
	Locker   func(strategy.Locker) strategy.Locker
	Batch    func(batch.Config) batch.Config
	Orders   func(httpapi.Orders) httpapi.Orders
	Handler  func(buyers, operator http.Handler) http.Handler // of the buyers' listener; it may show OperatorToken

	// Strategy returns the strategy to use instead of Settings.Strategy. All parts but the HTTP API are open then.
	Strategy func(context.Context, *Parts) (order.Strategy, error)

	// Spans exports the traces; nil for no traces.
	Spans sdktrace.SpanExporter

	// Alone says that the Redis belongs to this process, even if Settings.Redis does not name it yet. The strategy redis
	// is then allowed, and no second shop may serve the data folder.
	Alone bool
}
