package order_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"example.com/shop/internal/lab/wronglock"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/order"
)

// labStores are the servers that the strategies' locks are kept on: Redis for all
// databases, and where the database is a real server, it and a ZooKeeper.
type labStores struct {
	db        *gorm.DB
	redis     [5]string
	zookeeper string
}

func startLab(t *testing.T, db *gorm.DB) *labStores {
	t.Helper()
	l := &labStores{db: db}
	for i := range l.redis {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		l.redis[i] = server.Addr()
	}
	if l.server() {
		l.zookeeper = testserver.ZooKeeper(t)
	}
	return l
}

func (l *labStores) server() bool { return l.db.Name() != "sqlite" }

// equip gives an instance all locks that there are servers for, and says which
// strategies lack one.
func (l *labStores) equip(t *testing.T, c *order.Config, ttl time.Duration) {
	t.Helper()
	var nodes []redis.UniversalClient
	for _, addr := range l.redis {
		client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = client.Close() })
		nodes = append(nodes, client)
	}
	add := func(name string, b lock.Backend) {
		locker := lock.New(b, lock.Options{TTL: ttl, MaxWait: lockWait})
		t.Cleanup(func() { _ = locker.Close() })
		c.Lockers[name] = locker
	}
	add(order.RedlockLock, redlock.New(nodes, redlock.Options{NodeTimeout: time.Second, Tries: 10_000, Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond}))
	c.PlainLockers = map[string]order.PlainLocker{}
	for name, wrong := range wronglock.All(nodes[0], wronglock.Options{TTL: ttl, MaxWait: lockWait}) {
		c.PlainLockers[name] = wrong
	}
	if !l.server() {
		c.Missing = map[string]string{"mysql-lock": "SQLite", "for-update": "SQLite", "zookeeper": "no server"}
		return
	}
	c.Missing = nil
	pool, err := l.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	table := mysqllock.New(pool, mysqllock.Options{})
	if err := table.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(order.MySQLLock, table)
	nodesOf, err := zklock.New([]string{l.zookeeper}, zklock.Options{Root: "/" + l.db.Migrator().CurrentDatabase()})
	if err != nil {
		t.Fatal(err)
	}
	add(order.ZooKeeperLock, nodesOf)
}

// only says that a shop has no other strategies than these.
func only(names ...string) map[string]string {
	missing := map[string]string{}
	for _, s := range order.Strategies() {
		missing[s.Name] = "not in this test"
	}
	for _, name := range names {
		delete(missing, name)
	}
	return missing
}

// offered are the strategies that a shop has what they need for.
func offered(b *bundle) []order.Strategy {
	var all []order.Strategy
	for _, s := range order.Strategies() {
		if b.Missing(s.Name) == "" {
			all = append(all, s)
		}
	}
	return all
}
