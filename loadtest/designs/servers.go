package designs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shops"
)

// start connects to the servers that were given, and starts the others in containers: for a failover, which needs a
// Redis with replicas, where Redis is in a container and Redis decides in one of the designs.
func (c *Command) start(ctx context.Context, failover bool, progress func(string)) (
	g *Ground, stop func() error, err error,
) {
	var started shops.Undo
	defer func() {
		if err != nil {
			err = errors.Join(err, started.Close())
		}
	}()
	dsn, addr := c.MySQL, c.Redis
	if dsn == "" {
		server, err := testserver.OpenMySQL(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("%w; without Docker, give a server with --mysql", err)
		}
		started.Later(server.Close)
		progress(server.String())
		if dsn, err = server.NewSchema(ctx, "shop"); err != nil {
			return nil, nil, err
		}
	}
	if addr == "" {
		server, err := testserver.OpenRedis(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("%w; without Docker, give a server with --redis", err)
		}
		started.Later(server.Close)
		progress(server.String())
		addr = server.Addr()
	}
	g = &Ground{RedisAddr: addr}
	if failover && c.Faults && c.Redis == "" {
		if g.Sentinel, err = testserver.OpenRedisSentinel(ctx); err != nil {
			return nil, nil, err
		}
		started.Later(g.Sentinel.Close)
		progress(g.Sentinel.String() + ", with replicas and Sentinels")
	}
	var disconnect func() error
	if g.Servers, disconnect, err = connect(ctx, dsn, addr); err != nil {
		return nil, nil, err
	}
	started.Later(disconnect)
	if c.Redis != "" && c.Faults {
		if err := mustBeEmpty(ctx, g.Redis); err != nil {
			return nil, nil, err
		}
		started.Later(func() error { return g.Redis.FlushAll(context.WithoutCancel(ctx)).Err() })
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	g.Program = []string{self, "designs", "--seller"}
	return g, started.Close, nil
}

// mustBeEmpty refuses a Redis that somebody else may use: the designs empty it.
func mustBeEmpty(ctx context.Context, client redis.UniversalClient) error {
	info, err := client.InfoMap(ctx, "Keyspace").Result()
	if err == nil && len(info["Keyspace"]) > 0 {
		err = errors.New("--redis: it has keys, which would be deleted; give a Redis for tests, or empty it by FLUSHALL")
	}
	return err
}

// connect opens the database, whose schema it brings up to date, and Redis.
func connect(ctx context.Context, dsn, addr string) (on Servers, disconnect func() error, err error) {
	client, err := openRedis("redis://" + strings.TrimPrefix(addr, "redis://"))
	if err != nil {
		return on, nil, errors.New("--redis: want host:port or a URL such as redis://user:password@host:6379/0")
	}
	db, err := store.MySQL(ctx, dsn, store.Options{})
	if err != nil {
		return on, nil, errors.Join(fmt.Errorf("--mysql: %w", err), client.Close())
	}
	disconnect = func() error { return errors.Join(client.Close(), db.Close()) }
	_, err = db.Migrate(ctx)
	if err == nil {
		err = client.Ping(ctx).Err()
	}
	if err != nil {
		return on, nil, errors.Join(err, disconnect())
	}
	return Servers{DSN: dsn, DB: db.DB(), Redis: client}, disconnect, nil
}

// openRedis opens a Redis or, where the URL has a master_name, the one that Sentinels name. A script that has run
// unseen must not run again.
func openRedis(address string) (redis.UniversalClient, error) {
	const pool = 128 // a consumer for each of 64 SKUs, and the buyers
	if strings.Contains(address, "master_name=") {
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, err
		}
		o.PoolSize, o.MaxRetries, o.ContextTimeoutEnabled, o.DisableIdentity = pool, -1, true, true
		return redis.NewFailoverClient(o), nil
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	o.PoolSize, o.MaxRetries, o.ContextTimeoutEnabled, o.DisableIdentity = pool, -1, true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}
