package app

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/order/lane"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// teaching is what teaching mode adds to a shop.
type teaching struct {
	recorder        *lab.Recorder
	wrong           map[string]strategy.Locker // by the strategies' names
	database, redis string                     // names and versions
}

// notOffered returns why strategies cannot be used in this shop, by name: for teaching mode, outside of which no request
// chooses one.
func notOffered(s Settings) map[string]string {
	missing := map[string]string{}
	if s.MySQL == "" {
		missing["mysql-lock"] = "it needs MySQL or MariaDB: --mysql DSN"
		missing["for-update"] = "it needs MySQL or MariaDB: --mysql DSN; SQLite has one writer at a time, and no rows to lock"
	}
	if len(s.Redlock) == 0 && s.Redis != "" {
		missing["redlock"] = "it needs five independent Redis servers: --redlock ADDR,ADDR,ADDR,ADDR,ADDR"
		missing["redlock-unguarded"] = missing["redlock"]
	}
	if s.ZooKeeper == "" {
		missing["zookeeper"] = "it needs a ZooKeeper: --zookeeper ADDR"
	}
	return missing
}

func (c *components) openRedlock(ctx context.Context, s Settings) error {
	if len(s.Redlock) == 0 && s.Redis == "" {
		addrs, stop, err := StartEmbedded(5)
		if err != nil {
			return err
		}
		c.onClose("embedded redlock", stop)
		s.Redlock = addrs
	}
	if len(s.Redlock) == 0 {
		return nil
	}
	var nodes []redis.UniversalClient
	for _, address := range s.Redlock {
		server, err := readRedis(address)
		if err != nil {
			return fmt.Errorf("redlock: %w", err)
		}
		node, err := c.openClient(ctx, s, server)
		if err != nil {
			return fmt.Errorf("redlock: %w", err)
		}
		nodes = append(nodes, node)
	}
	// In a race the nodes are busy, so that an answer may take long; they are near, so that a retry costs little.
	c.addLocker(s, strategy.RedlockLock, redlock.New(nodes, redlock.Options{
		NodeTimeout: 500 * time.Millisecond, Delay: 5 * time.Millisecond,
	}))
	return nil
}

// openMySQLLock also creates the table of the locks, which is only for teaching mode and so in no migration.
func (c *components) openMySQLLock(ctx context.Context, s Settings) error {
	if s.MySQL == "" {
		return nil
	}
	table := mysqllock.New(c.database.DB())
	if err := table.CreateTable(ctx); err != nil {
		return fmt.Errorf("mysql-lock: make its table: %w", err)
	}
	c.addLocker(s, strategy.MySQLLock, table)
	return nil
}

// openOwnerlessRow opens the table of the lock. With SQLite it is in a file of its own: in the shop's, taking the lock would
// wait for transactions that sell, as it does not in MySQL.
func (c *components) openOwnerlessRow(ctx context.Context, s Settings) (err error) {
	rows := c.database
	if s.MySQL == "" {
		rows, err = store.SQLite(ctx, filepath.Join(s.Data, "wrong_locks.db"), store.Options{Through: c.lab.recorder.Database(sql.OpenDB)})
		if err != nil {
			return err
		}
		c.onClose("wrong locks", rows.Close)
	}
	c.lab.wrong["mysql-lock-ownerless"], err = lab.OwnerlessRow(ctx, rows.DB(), s.LockWait)
	return err
}

// openZooKeeper waits until it has answered, like the other servers.
func (c *components) openZooKeeper(ctx context.Context, s Settings) error {
	if s.ZooKeeper == "" {
		return nil
	}
	nodes, err := zklock.New(strings.Split(s.ZooKeeper, ","), zklock.Options{
		SessionTimeout: 3 * s.LockTTL, Trace: c.lab.recorder.ZooKeeper,
	})
	if err != nil {
		return fmt.Errorf("zookeeper at %s: %w (--zookeeper, SHOP_ZOOKEEPER)", s.ZooKeeper, err)
	}
	c.addLocker(s, strategy.ZooKeeperLock, nodes)
	defer s.announce("zookeeper at " + s.ZooKeeper)()
	for {
		err := c.lockers[strategy.ZooKeeperLock].Do(ctx, "start", func(context.Context, *lock.Lease) error { return nil })
		switch {
		case err == nil:
			return nil
		case errors.Is(ctx.Err(), context.Canceled):
			return context.Cause(ctx)
		case ctx.Err() != nil || !errors.Is(err, lock.ErrNoAnswer):
			return fmt.Errorf("zookeeper at %s does not answer: %w; check that it runs and that --zookeeper (SHOP_ZOOKEEPER) is right", s.ZooKeeper, err)
		}
	}
}

// Source returns a file in which the line of a recording can be, by its name there.
func Source(file string) ([]byte, error) {
	folders := map[string]embed.FS{"internal/order/strategy": strategy.Sources, "internal/order/lane": lane.Sources, "internal/lab": lab.Sources}
	return folders[path.Dir(file)].ReadFile(path.Base(file))
}

// Script returns the Lua source of a command in a recording, such as "EVALSHA release lock:{sku:mug} ATQ4Z2…"; empty if it
// has none.
func Script(command string) string {
	words := append(strings.Fields(command), "", "", "")
	name, key := words[1], words[2]
	scripts := slices.Concat(lock.Scripts(), lab.Scripts())
	if strings.HasPrefix(key, "redlock:") {
		scripts = redlock.Scripts()
	}
	for _, s := range scripts {
		if s.Name == name {
			return s.Source
		}
	}
	return ""
}
