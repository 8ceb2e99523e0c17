package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/metrics"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/store"
	"example.com/shop/internal/tape"
	"example.com/shop/internal/tracing"
)

// parts is what a shop has open, in the order in which it is opened. Each shop
// has its own, also where several run in one process.
type parts struct {
	metrics  *metrics.Metrics
	traces   *tracing.Traces // nil: off
	tapes    *tape.Shelf     // of teaching mode; else nil
	database *Database
	probe    *Database // asks whether the database answers: see openProbe
	redis    redis.UniversalClient
	lockers  map[string]*lock.Locker
	orders   *order.Service // nil until service
	news     *news
	lab      labParts
	log      *slog.Logger

	servers orderhttp.Servers // named in teaching mode
}

// openParts opens them all or none.
func openParts(ctx context.Context, s Settings) (p *parts, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	open := &parts{metrics: newMetrics(), log: s.log()}
	if s.Lab {
		open.tapes = tape.NewShelf()
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, open.close())
		}
	}()
	if open.traces, err = tracing.Start(ctx, ThisBuild().Version); err != nil {
		return nil, err
	}
	if open.database, err = openDatabase(ctx, s, store.Pool{}, open.watchDatabase(s)...); err != nil {
		return nil, err
	}
	if err = open.database.Prepare(ctx); err != nil {
		return nil, err
	}
	if open.probe, err = openProbe(ctx, s); err != nil {
		return nil, err
	}
	if open.redis, err = openRedis(ctx, s); err != nil {
		return nil, err
	}
	open.recordRedis(open.redis)
	if err = open.traceRedis(); err != nil {
		return nil, err
	}
	open.lockers = map[string]*lock.Locker{
		order.RedisLock:  open.locker(s, order.RedisLock, lock.NewRedis(open.redis)),
		order.MemoryLock: open.locker(s, order.MemoryLock, lock.NewMemory()),
	}
	open.news = newNews(open.redis, open.log)
	if err = open.openLab(ctx, s); err != nil {
		return nil, err
	}
	if err = open.measure(); err != nil {
		return nil, err
	}
	if s.Lab {
		if open.servers, err = open.askVersions(ctx); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// locker returns one that is observed under its name.
func (p *parts) locker(s Settings, name string, b lock.Backend) *lock.Locker {
	return lock.New(b, lock.Options{TTL: s.LockTTL, MaxWait: s.LockWait, Observer: p.recordLock(p.metrics.Lock(name))})
}

// service wires the order service over the parts, once; it is closed with them.
func (p *parts) service(s Settings) (*order.Service, error) {
	lockers := map[string]order.Locker{}
	for name, locker := range p.lockers {
		lockers[name] = locker
	}
	service, err := order.New(order.Config{
		Store:        p.database.Orders(),
		Stock:        p.database.Stock(),
		Lockers:      lockers,
		PlainLockers: p.lab.wrong,
		Missing:      p.lab.missing,
		CommitMargin: s.LockTTL / commitShare,
		Think:        s.Think,
		Hold:         s.Hold,
		MaxOpen:      s.MaxOpenOrders,
		HeadStarts:   p.database.headStarts(),
		SoldOutFor:   s.SoldOutFor,
		Announce:     p.news.tell,
		OnRefused:    p.metrics.RefusedFromMemory,
		OnBatch:      p.metrics.Batch,
		OnPanic:      func(err error) { p.log.Error("lane panicked", "error", err) },
	})
	if err != nil {
		return nil, fmt.Errorf("wire orders: %w", err)
	}
	p.orders = service
	p.metrics.Queue("lanes", service.Queued)
	if s.SoldOutFor > 0 {
		p.news.start(service)
	}
	return service, nil
}

// handler wires the HTTP API over the parts.
func (p *parts) handler(s Settings, service *order.Service, draining func() bool) (http.Handler, error) {
	known, err := buyers(s)
	if err != nil {
		return nil, fmt.Errorf("wire tokens: %w", err)
	}
	return orderhttp.New(orderhttp.Config{
		Buyers:      known,
		Limiter:     p.limiter(s),
		Orders:      service,
		Missing:     service.Missing,
		Stock:       p.database.Stock(),
		Auditor:     p.database.Orders(),
		Checks:      p.checks(),
		Draining:    draining,
		MaxInFlight: s.MaxInFlight,
		Lab:         s.Lab,
		Tapes:       p.tapes,
		Servers:     p.servers,
		Timeout:     requestTimeout(s),
		Log:         s.log(),
		Observer:    p.metrics,
		Trace:       p.traceHTTP(),
	})
}

// operator wires the operator's API over the parts.
func (p *parts) operator(s Settings) (http.Handler, error) {
	return orderhttp.NewOperator(orderhttp.OperatorConfig{
		Token:   s.OperatorToken,
		Stock:   deliveries{p.database.Stock(), p.orders},
		Auditor: p.database.Orders(),
		Metrics: p.metrics.Handler(),
		Timeout: operatorTimeout,
		Log:     s.log(),
	})
}

// commitShare is the part of a lease that must be left to start a commit: enough
// for a slow one, little enough that a short lease can still sell.
const commitShare = 10

// close closes what is open, in the order that lets each still use the next: who
// leads a lane has a lease, and a locker gives its leases back to Redis.
func (p *parts) close() error {
	var errs []error
	if p.orders != nil {
		p.orders.Close()
	}
	if p.news != nil {
		p.news.close()
	}
	for name, locker := range p.lockers {
		if err := locker.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close locker %s: %w", name, err))
		}
	}
	for _, node := range p.lab.nodes {
		if err := node.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close redlock's redis: %w", err))
		}
	}
	if p.redis != nil {
		if err := p.redis.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close redis: %w", err))
		}
	}
	if p.probe != nil {
		if err := p.probe.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the database's probe: %w", err))
		}
	}
	if p.database != nil {
		if err := p.database.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close database: %w", err))
		}
	}
	if p.traces != nil {
		// What a collector does not take is no reason to call the shop's end a failure.
		if err := p.traces.Close(context.Background()); err != nil {
			p.log.Warn("traces were lost", "error", err)
		}
	}
	return errors.Join(errs...)
}
