package order_test

import (
	"context"
	"log"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/stockstore"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(holderArgs); args != "" {
		if err := holdForParent(args); err != nil {
			log.Fatal(err) //nolint:forbidigo // this process is the holder, not the test
		}
		return
	}
	goleak.VerifyTestMain(testserver.Wrap(m))
}

// bundle is a shop's service on a real database, with a lock that stands for the
// one that all instances share.
type bundle struct {
	*order.Service
	db     *gorm.DB
	stock  *spyStock
	orders *orderstore.Store
	shared *lock.Locker
}

// spyStock lets a test do something between a service's reading of the stock and
// what follows.
type spyStock struct {
	*stockstore.Store
	afterRead func()
}

func (s *spyStock) SKU(ctx context.Context, name string) (stock.SKU, error) {
	sku, err := s.Store.SKU(ctx, name)
	if f := s.afterRead; f != nil {
		s.afterRead = nil
		f()
	}
	return sku, err
}

// setup returns one instance of a shop. Instances with the same db and backend
// are instances of one shop.
func setup(t *testing.T, db *gorm.DB, backend lock.Backend, ttl time.Duration) *bundle {
	t.Helper()
	b := &bundle{
		db:     db,
		stock:  &spyStock{Store: stockstore.New(db)},
		orders: orderstore.New(db),
		shared: lock.New(backend, lock.Options{TTL: ttl}),
	}
	own := lock.New(lock.NewMemory(), lock.Options{})
	t.Cleanup(func() {
		for _, l := range []*lock.Locker{b.shared, own} {
			if err := l.Close(); err != nil {
				t.Errorf("close locker: %v", err)
			}
		}
	})
	var err error
	b.Service, err = order.New(order.Config{
		Store:        b.orders,
		Stock:        b.stock,
		Lockers:      map[string]order.Locker{order.RedisLock: b.shared, order.MemoryLock: own},
		CommitMargin: ttl / 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// threeShops returns three instances of one shop.
func threeShops(t *testing.T, db *gorm.DB) []*bundle {
	t.Helper()
	backend := lock.NewMemory()
	var shops []*bundle
	for range 3 {
		shops = append(shops, setup(t, db, backend, 10*time.Second))
	}
	return shops
}

// atOnce calls f n times, with 0 to n-1, and waits for all.
func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// supply creates a SKU.
func (b *bundle) supply(t *testing.T, name string, units int64) {
	t.Helper()
	sku, err := stock.NewSKU(name, stock.Money{Minor: 1250, Currency: "EUR"}, units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stock.Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
}

// raiseFence makes the database remember a fence that no lease had.
func (b *bundle) raiseFence(t *testing.T, name string, fence int64) {
	t.Helper()
	if err := b.db.Exec("UPDATE skus SET fence = ? WHERE name = ?", fence, name).Error; err != nil {
		t.Fatal(err)
	}
}

// audit returns the account of a SKU and fails the test on any difference.
func (b *bundle) audit(t *testing.T, name string) stock.Account {
	t.Helper()
	var account stock.Account
	err := b.orders.Audit(t.Context(), name,
		func(a stock.Account) error { account = a; return nil },
		func(d stock.Difference) error { t.Errorf("audit: %+v", d); return nil })
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	return account
}

// buy is a request for units of a SKU.
func buy(key, sku string, units int64) order.Request {
	return order.Request{Buyer: "ann", Key: key, Lines: []order.RequestLine{{SKU: sku, Units: units}}}
}
