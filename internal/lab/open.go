package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
)

// open opens the locks of all strategies that there are servers for, and returns the strategy of the shop.
func (l *teaching) open(ctx context.Context, p *app.Parts) (_ order.Strategy, err error) {
	l.Parts = p
	l.lockers = WrongLocks(p.Redis, LockOptions{TTL: p.LockTTL, ShortTTL: l.settings.ShortTTL, MaxWait: p.LockWait})
	for name, locker := range l.lockers {
		l.lockers[name] = Locker(locker)
	}
	l.add(MemoryLock, lock.NewMemory())
	for _, step := range []func(context.Context) error{l.openRedlock, l.openTables, l.openZooKeeper} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	l.lockers[strategy.SharedLock] = p.Locker
	lanes, batch := p.Seller, p.Seller
	if p.Strategy == "batch" {
		lanes = p.NewSeller("lanes", p.Locker) //nolint:contextcheck // it outlives the start
	} else {
		batch = p.NewSeller("batch", nil) //nolint:contextcheck // as above
	}
	l.offers = Offers(Parts{Parts: p, Lanes: lanes, Batch: batch, Lockers: l.lockers}, l.settings.missing())
	first := slices.IndexFunc(l.offers, func(o Offer) bool { return o.Name == p.Strategy })
	l.offers = slices.Insert(slices.Delete(slices.Clone(l.offers), first, first+1), 0, l.offers[first])
	l.redis = RedisVersion(ctx, p.Redis)
	l.database, err = p.Database.Version(ctx)
	return chosen{}, err
}

// missing returns why strategies cannot be used in this shop, by name.
func (s Settings) missing() map[string]string {
	missing := map[string]string{}
	if s.MySQL == "" {
		for _, name := range []string{"mysql-lock", "get-lock", Serializable, RepeatableRead} {
			missing[name] = "it needs MySQL or MariaDB: --mysql DSN"
		}
		missing["for-update"] = "it needs MySQL or MariaDB: --mysql DSN; SQLite has one writer at a time, and no rows to lock"
	}
	if len(s.Redlock) == 0 {
		missing["redlock"] = "it needs five independent Redis servers: --redlock ADDR,ADDR,ADDR,ADDR,ADDR"
		missing["redlock-unguarded"] = missing["redlock"]
	}
	if s.ZooKeeper == "" {
		missing["zookeeper"] = "it needs a ZooKeeper: --zookeeper ADDR"
	}
	return missing
}

func (l *teaching) add(name string, b lock.Backend) *lock.Locker {
	locker := l.NewLocker(name, b)
	l.lockers[name] = Locker(strategy.LockerOf(locker))
	return locker
}

func (l *teaching) openRedlock(ctx context.Context) error {
	var nodes []redis.UniversalClient
	for _, address := range l.settings.Redlock {
		node, err := l.OpenRedis(ctx, address)
		if err != nil {
			return fmt.Errorf("redlock: %w", err)
		}
		nodes = append(nodes, node)
	}
	if len(nodes) > 0 {
		l.add(RedlockLock, Redsync(nodes...))
	}
	return nil
}

// openTables opens the locks that are tables, which belong to the teaching shop and so are in no
// migration. With SQLite, the ownerless one is in a file of its own: in the shop's, taking the lock
// would wait for transactions that sell, as it does not in MySQL.
func (l *teaching) openTables(ctx context.Context) (err error) {
	rows := l.Database
	if l.MySQL != "" {
		table := mysqllock.New(rows.DB())
		if err := table.CreateTable(ctx); err != nil {
			return fmt.Errorf("mysql-lock: make its table: %w", err)
		}
		l.add(MySQLLock, table)
	} else {
		rows, err = store.SQLite(ctx, filepath.Join(l.Data, "wrong_locks.db"), store.Options{Through: l.recorder.Database(sql.OpenDB)})
		if err != nil {
			return err
		}
		l.OnClose("wrong locks", rows.Close)
	}
	ownerless, err := OwnerlessRow(ctx, rows.DB(), l.LockWait)
	l.lockers["mysql-lock-ownerless"] = Locker(ownerless)
	return err
}

// openZooKeeper waits until it has answered, like the other servers.
func (l *teaching) openZooKeeper(ctx context.Context) error {
	address := l.settings.ZooKeeper
	if address == "" {
		return nil
	}
	nodes, err := zklock.New(strings.Split(address, ","), zklock.Options{SessionTimeout: 3 * l.LockTTL, Trace: l.recorder.ZooKeeper})
	if err != nil {
		return fmt.Errorf("zookeeper at %s: %w (--zookeeper, SHOP_ZOOKEEPER)", address, err)
	}
	locker := l.add(ZooKeeperLock, nodes)
	defer l.Announce("zookeeper at " + address)()
	for {
		err := locker.Do(ctx, "start", func(context.Context, *lock.Lease) error { return nil })
		switch {
		case err == nil:
			return nil
		case errors.Is(ctx.Err(), context.Canceled):
			return context.Cause(ctx)
		case ctx.Err() != nil || !errors.Is(err, lock.ErrNoAnswer):
			return fmt.Errorf("zookeeper at %s does not answer: %w; check that it runs and that --zookeeper (SHOP_ZOOKEEPER) is right", address, err)
		}
	}
}
