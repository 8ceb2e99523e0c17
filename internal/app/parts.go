package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderhttp"
)

// parts is what a shop has open, in the order in which it is opened. Each shop
// has its own, also where several run in one process.
type parts struct {
	database *Database
	redis    redis.UniversalClient
	lockers  map[string]*lock.Locker
}

// openParts opens them all or none.
func openParts(ctx context.Context, s Settings) (p *parts, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	open := &parts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, open.close())
		}
	}()
	if open.database, err = OpenDatabase(ctx, s); err != nil {
		return nil, err
	}
	if err = open.database.Prepare(ctx); err != nil {
		return nil, err
	}
	if open.redis, err = openRedis(ctx, s); err != nil {
		return nil, err
	}
	open.lockers = map[string]*lock.Locker{
		order.RedisLock:  lock.New(lock.NewRedis(open.redis), lock.Options{TTL: s.LockTTL, MaxWait: s.LockWait}),
		order.MemoryLock: lock.New(lock.NewMemory(), lock.Options{TTL: s.LockTTL, MaxWait: s.LockWait}),
	}
	return open, nil
}

// handler wires the HTTP API over the parts.
func (p *parts) handler(s Settings, draining func() bool) (http.Handler, error) {
	stocks, orders := p.database.Stock(), p.database.Orders()
	lockers := map[string]order.Locker{}
	for name, locker := range p.lockers {
		lockers[name] = locker
	}
	service, err := order.New(order.Config{
		Store:        orders,
		Stock:        stocks,
		Lockers:      lockers,
		CommitMargin: s.LockTTL / commitShare,
		Think:        s.Think,
	})
	if err != nil {
		return nil, fmt.Errorf("wire orders: %w", err)
	}
	return orderhttp.New(orderhttp.Config{
		Orders:  service,
		Stock:   stocks,
		Auditor: orders,
		Checks: []orderhttp.Check{
			{Name: "database", Ping: p.database.Ping},
			{Name: "redis", Ping: func(ctx context.Context) error { return p.redis.Ping(ctx).Err() }},
		},
		Draining: draining,
		Lab:      s.Lab,
		Timeout:  requestTimeout(s),
		Log:      s.log(),
	})
}

// commitShare is the part of a lease that must be left to start a commit: enough
// for a slow one, little enough that a short lease can still sell.
const commitShare = 10

// close closes what is open, in the order that lets each still use the next: a
// locker gives its leases back to Redis.
func (p *parts) close() error {
	var errs []error
	for name, locker := range p.lockers {
		if err := locker.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close locker %s: %w", name, err))
		}
	}
	if p.redis != nil {
		if err := p.redis.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close redis: %w", err))
		}
	}
	if p.database != nil {
		if err := p.database.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close database: %w", err))
		}
	}
	return errors.Join(errs...)
}
