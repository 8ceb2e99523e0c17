package shops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/cleanup"
)

// Instances are shops in this process.
type Instances struct {
	Count int
	MySQL string // DSN; empty for an embedded SQLite file
	Redis string // host:port or URL; empty for an embedded server

	Redlock   []string // as Redis; none for embedded servers, if Redis is embedded
	ZooKeeper string   // host:port; empty for none

	// Log gets what goes wrong in the shops; nil discards it.
	Log *slog.Logger
}

// hold is for how long unpaid orders keep their units: longer than any race takes,
// so that they are there when it is judged.
const hold = 2 * time.Hour

// stopping is how long one shop has to stop.
const stopping = 15 * time.Second

// Open starts the instances, in teaching mode.
func (n Instances) Open(ctx context.Context) (*Set, error) {
	var undo undo
	set, err := n.open(ctx, &undo)
	if err != nil {
		return nil, cleanup.Join(err, undo.run())
	}
	set.close = undo.run
	return set, nil
}

func (n Instances) open(ctx context.Context, undo *undo) (*Set, error) {
	settings := app.Default()
	settings.Listen, settings.Lab = "127.0.0.1:0", true
	settings.Hold = hold
	settings.MySQL, settings.Redis, settings.Log = n.MySQL, n.Redis, n.Log
	settings.Redlock, settings.ZooKeeper = n.Redlock, n.ZooKeeper
	if n.MySQL == "" || n.Redis == "" {
		dir, err := os.MkdirTemp("", "shop-loadtest-")
		if err != nil {
			return nil, fmt.Errorf("folder for the embedded database: %w", err)
		}
		undo.add(func() error { return os.RemoveAll(dir) })
		embedded, err := app.StartEmbedded(dir)
		if err != nil {
			return nil, err
		}
		undo.add(embedded.Close)
		if n.MySQL == "" {
			settings.SQLite = embedded.SQLite()
		}
		if n.Redis == "" {
			settings.Redis, settings.RedisEmbedded = embedded.Redis(), true
			if len(n.Redlock) == 0 {
				if settings.Redlock, err = embedded.StartRedlock(); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := migrate(ctx, settings); err != nil {
		return nil, err
	}
	set := &Set{}
	for i := range n.Count {
		shop, err := app.Start(ctx, settings)
		if err != nil {
			return nil, fmt.Errorf("start shop %d of %d: %w", i+1, n.Count, err)
		}
		undo.add(func() error { return stop(context.WithoutCancel(ctx), shop) })
		set.URLs = append(set.URLs, shop.URL())
	}
	return set, nil
}

// migrate brings the schema up to date, which a shop does by itself only on a
// SQLite file. Validate comes first: it refuses a server that looks like
// production's.
func migrate(ctx context.Context, settings app.Settings) (err error) {
	if settings.MySQL == "" {
		return nil
	}
	if err := settings.Validate(); err != nil {
		return err
	}
	database, err := app.OpenDatabase(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	_, err = database.Migrate(ctx)
	return err
}

// stop also tells why a shop had stopped by itself.
func stop(ctx context.Context, shop *app.Shop) error {
	ctx, cancel := context.WithTimeout(ctx, stopping)
	defer cancel()
	return errors.Join(shop.Err(), shop.Shutdown(ctx))
}

// Stores names the servers, without user and password.
func (n Instances) Stores() Stores {
	s := Stores{Database: "SQLite, embedded", Redis: "Redis protocol, embedded"}
	if n.MySQL != "" {
		s.Database = "MySQL or MariaDB at " + mysqlHost(n.MySQL)
	}
	if n.Redis != "" {
		s.Redis = "Redis at " + redisHost(n.Redis)
	}
	return s
}
