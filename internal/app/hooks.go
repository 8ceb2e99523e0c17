package app

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/http"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

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
