package order_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/ordertest"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// bundle is an instance of a shop and what a test does around its store.
type bundle struct {
	*ordertest.Shop
	spy *ordertest.Spy
}

// setup returns an instance; those with the same db and backend are instances of one shop.
func setup(t *testing.T, db *store.Store, change ...func(*ordertest.Config)) *bundle {
	t.Helper()
	b := &bundle{spy: &ordertest.Spy{Store: db}}
	b.Shop = ordertest.New(t, db, append([]func(*ordertest.Config){func(c *ordertest.Config) {
		c.Store, c.Default = b.spy, "redis"
	}}, change...)...)
	return b
}

// another returns another instance of b's shop.
func (b *bundle) another(t *testing.T, change ...func(*ordertest.Config)) *bundle {
	t.Helper()
	o := &bundle{spy: &ordertest.Spy{Store: b.DB}}
	o.Shop = b.Another(t, append([]func(*ordertest.Config){func(c *ordertest.Config) { c.Store = o.spy }}, change...)...)
	return o
}

// threeShops returns three instances of one shop, with all locks that there are servers for.
func threeShops(t *testing.T, db *store.Store, change ...func(*ordertest.Config)) []*bundle {
	t.Helper()
	first := setup(t, db, append(change, func(c *ordertest.Config) { c.Lockers = locks(t, db) })...)
	return []*bundle{first, first.another(t), first.another(t)}
}

// locks are those that all instances share beside Redis': on five Redis, and where the database is a server, in it and
// in a ZooKeeper.
func locks(t *testing.T, db *store.Store) map[string]strategy.Locker {
	t.Helper()
	lockers := map[string]strategy.Locker{}
	add := func(name string, b lock.Backend) {
		locker := lock.New(b, lock.Options{TTL: 10 * time.Second, MaxWait: 5 * time.Minute})
		t.Cleanup(func() { _ = locker.Close() })
		lockers[name] = strategy.Lease(locker)
	}
	var nodes []redis.UniversalClient
	for range 5 {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = client.Close() })
		nodes = append(nodes, client)
	}
	add(strategy.RedlockLock, redlock.New(nodes, redlock.Options{NodeTimeout: time.Second, Delay: 5 * time.Millisecond}))
	if db.IsSQLite() {
		return lockers
	}
	table := mysqllock.New(db.DB())
	if err := table.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(strategy.MySQLLock, table)
	tree, err := zklock.New([]string{testserver.ZooKeeper(t)}, zklock.Options{Root: fmt.Sprintf("/orders-%d", time.Now().UnixNano())})
	if err != nil {
		t.Fatal(err)
	}
	add(strategy.ZooKeeperLock, tree)
	return lockers
}

// offered are the strategies that an instance can use.
func offered(b *bundle) []order.Offer {
	return slices.DeleteFunc(slices.Clone(b.Offers), func(o order.Offer) bool {
		return o.Missing != "" || o.Name == "for-update" && b.DB.IsSQLite()
	})
}

// buy is ann's request for units of a SKU.
func buy(key, sku string, units int64) order.Request { return ordertest.Buy("ann", key, sku, units) }

// cart is ann's request of several lines.
func cart(key string, lines ...order.RequestLine) order.Request {
	return order.Request{Buyer: "ann", Key: key, Lines: lines}
}

// place places an order of ann's.
func (b *bundle) place(t *testing.T, key, sku string, units int64) order.Order {
	t.Helper()
	return b.MustPlace(t, buy(key, sku, units))
}

// raiseFence makes the database remember a fence that no lease had, of a supply.
func (b *bundle) raiseFence(t *testing.T, name string, fence int64) {
	t.Helper()
	b.Exec(t, "UPDATE skus SET fence = ? WHERE name = ?", fence, name)
	b.Exec(t, "UPDATE movements SET fence = ? WHERE sku = ? AND kind = 'supply'", fence, name)
}

// account returns the account of a SKU that may differ.
func (b *bundle) account(t *testing.T, sku string) (account stock.Account, differences int) {
	t.Helper()
	err := b.DB.Audit(t.Context(), sku,
		func(a stock.Account) error { account = a; return nil },
		func(stock.Difference) error { differences++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return account, differences
}

// payment asks that an order be ended, without an idempotency key.
func payment(o order.Order) order.EndRequest { return withKey(o, "") }

func withKey(o order.Order, key string) order.EndRequest {
	return order.EndRequest{Buyer: o.Buyer, OrderID: o.ID, Key: key}
}

// makeDue ends the orders' time, by the database's clock, in this order.
func (b *bundle) makeDue(t *testing.T, orders ...order.Order) {
	t.Helper()
	for i, o := range orders {
		b.Exec(t, "UPDATE orders SET expires_at = ? WHERE id = ?", fmt.Sprintf("2020-01-01 00:00:%02d.000000", i), o.ID)
	}
}

// wantEnd fails unless the order has this status, the SKU this level, and the audit is clean.
func (b *bundle) wantEnd(t *testing.T, o order.Order, status order.Status, sku string, level stock.Level) {
	t.Helper()
	now, err := b.Order(t.Context(), o.Buyer, o.ID)
	if err != nil || now.Status != status {
		t.Errorf("order is %q, %v, want %q", now.Status, err, status)
	}
	if got := b.Audit(t, sku).Level; got != level {
		t.Errorf("level %v, want %v", got, level)
	}
}

// wantState fails unless err says that the order has ended with this status.
func wantState(t *testing.T, err error, status order.Status) {
	t.Helper()
	want := order.ErrState
	if status == order.Expired {
		want = order.ErrExpired
	}
	var state *order.Error
	if !errors.Is(err, want) || !errors.As(err, &state) || state.Status != status {
		t.Errorf("got %v, want a %s that says %s", err, want.Code, status)
	}
}

// afterRead does something after the next read of the stock.
func (b *bundle) afterRead(do func()) {
	b.spy.AfterLevels = func() {
		b.spy.AfterLevels = nil
		do()
	}
}
