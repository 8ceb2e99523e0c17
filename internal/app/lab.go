package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lab/wronglock"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/order"
)

// labParts is what the strategies of teaching mode need beside the database and
// Redis.
type labParts struct {
	nodes   []redis.UniversalClient // of redlock
	wrong   map[string]order.PlainLocker
	missing map[string]string // why a strategy is not offered, by its name
}

// openLab opens them, in teaching mode, as far as servers were named. In a shop
// for buyers there is no wrong lock.
func (p *parts) openLab(ctx context.Context, s Settings) error {
	p.lab.missing = notOffered(s)
	if !s.Lab {
		return nil
	}
	p.lab.wrong = map[string]order.PlainLocker{}
	for name, wrong := range wronglock.All(p.redis, wronglock.Options{TTL: s.LockTTL, ShortTTL: s.LabShortTTL, MaxWait: s.LockWait}) {
		p.lab.wrong[name] = wrong
	}
	for _, open := range []func(context.Context, Settings) error{p.openRedlock, p.openMySQLLock, p.openZooKeeper} {
		if err := open(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// notOffered tells of each strategy that lacks something why it does.
func notOffered(s Settings) map[string]string {
	missing := map[string]string{}
	if !s.Lab {
		for _, how := range order.Strategies() {
			if how.Lock != order.NoLock && how.Lock != order.RedisLock && how.Lock != order.MemoryLock {
				missing[how.Name] = "it is for teaching mode, add --lab"
			}
		}
		return missing
	}
	if s.MySQL == "" {
		missing["mysql-lock"] = "it needs MySQL or MariaDB: --mysql DSN"
		missing["for-update"] = "it needs MySQL or MariaDB: --mysql DSN; SQLite has one writer at a time, and no rows to lock"
	}
	if len(s.Redlock) == 0 {
		missing["redlock"] = "it needs five Redis that know nothing of each other: --redlock ADDR,ADDR,ADDR,ADDR,ADDR"
	}
	if s.ZooKeeper == "" {
		missing["zookeeper"] = "it needs a ZooKeeper: --zookeeper ADDR"
	}
	return missing
}

// labRedlock lets LockWait end the wait, not a number of tries, and is for nodes
// that are near and, in a race, busy.
func labRedlock() redlock.Options {
	return redlock.Options{NodeTimeout: 500 * time.Millisecond, Tries: 1_000_000, Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond}
}

func (p *parts) openRedlock(ctx context.Context, s Settings) error {
	for _, address := range s.Redlock {
		node := s
		node.Redis = address
		client, err := openRedis(ctx, node)
		if err != nil {
			return fmt.Errorf("redlock: %w", err)
		}
		p.recordRedis(client)
		p.lab.nodes = append(p.lab.nodes, client)
	}
	if len(p.lab.nodes) > 0 {
		p.lockers[order.RedlockLock] = p.locker(s, order.RedlockLock, redlock.New(p.lab.nodes, labRedlock()))
	}
	return nil
}

// openMySQLLock makes the table as well: it is the lab's alone, and no migration's.
func (p *parts) openMySQLLock(ctx context.Context, s Settings) error {
	if s.MySQL == "" {
		return nil
	}
	pool, err := p.database.db.DB()
	if err != nil {
		return err
	}
	table := mysqllock.New(pool, mysqllock.Options{})
	if err := table.CreateTable(ctx); err != nil {
		return fmt.Errorf("mysql-lock: make its table: %w", err)
	}
	p.lockers[order.MySQLLock] = p.locker(s, order.MySQLLock, table)
	return nil
}

// openZooKeeper waits until it has answered, as for the other servers.
func (p *parts) openZooKeeper(ctx context.Context, s Settings) error {
	if s.ZooKeeper == "" {
		return nil
	}
	nodes, err := zklock.New(strings.Split(s.ZooKeeper, ","), zklock.Options{SessionTimeout: 3 * s.LockTTL})
	if err != nil {
		return fmt.Errorf("zookeeper at %s: %w (--zookeeper, SHOP_ZOOKEEPER)", s.ZooKeeper, err)
	}
	locker := p.locker(s, order.ZooKeeperLock, nodes)
	p.lockers[order.ZooKeeperLock] = locker
	defer s.announce("zookeeper at " + s.ZooKeeper)()
	if err := awaitAnswer(ctx, locker); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return context.Cause(ctx)
		}
		return fmt.Errorf("zookeeper at %s does not answer: %w; check that it runs and that --zookeeper (SHOP_ZOOKEEPER) is right", s.ZooKeeper, err)
	}
	return nil
}

// awaitAnswer asks a store until it has answered, or ctx ends.
func awaitAnswer(ctx context.Context, locker *lock.Locker) error {
	for {
		err := locker.Do(ctx, "start", func(context.Context, *lock.Lease) error { return nil })
		if ctx.Err() != nil || !errors.Is(err, lock.ErrNoAnswer) {
			return err
		}
	}
}
