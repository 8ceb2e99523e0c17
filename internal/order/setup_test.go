package order_test

import (
	"context"
	"log"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
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
	config order.Config
}

// spyStock lets a test do something between a service's reading of the stock and
// what follows.
type spyStock struct {
	*stockstore.Store
	afterRead func()
}

func (s *spyStock) SKUs(ctx context.Context, names []string) ([]stock.SKU, time.Time, error) {
	skus, now, err := s.Store.SKUs(ctx, names)
	if f := s.afterRead; f != nil {
		s.afterRead = nil
		f()
	}
	return skus, now, err
}

// lockWait is for a crowd on a busy machine: all of it is served in the end.
const lockWait = 5 * time.Minute

// setup returns one instance of a shop, with the strategies that need nothing
// else. Instances with the same db and backend are instances of one shop.
func setup(t *testing.T, db *gorm.DB, backend lock.Backend, ttl time.Duration) *bundle {
	t.Helper()
	return setupIn(t, nil, db, backend, ttl)
}

// setupIn returns one that has all strategies of a lab as well, if there is one.
func setupIn(t *testing.T, lab *labStores, db *gorm.DB, backend lock.Backend, ttl time.Duration) *bundle {
	t.Helper()
	b := &bundle{
		db:     db,
		stock:  &spyStock{Store: stockstore.New(db)},
		orders: orderstore.New(db),
		shared: lock.New(backend, lock.Options{TTL: ttl, MaxWait: lockWait}),
	}
	own := lock.New(lock.NewMemory(), lock.Options{MaxWait: lockWait})
	t.Cleanup(func() {
		for _, l := range []*lock.Locker{b.shared, own} {
			if err := l.Close(); err != nil {
				t.Errorf("close locker: %v", err)
			}
		}
	})
	b.config = order.Config{
		Store:        b.orders,
		Stock:        b.stock,
		Lockers:      map[string]order.Locker{order.RedisLock: b.shared, order.MemoryLock: own},
		Missing:      only("lanes", "redis", "none", "mutex", "conditional", "optimistic", "release-before-commit"),
		CommitMargin: ttl / 10,
		HeadStarts:   headStarts(db),
	}
	if lab != nil {
		lab.equip(t, &b.config, ttl)
	}
	var err error
	if b.Service, err = order.New(b.config); err != nil {
		t.Fatal(err)
	}
	return b
}

// headStarts is how many there can be: none in a SQLite file, which has one writer.
func headStarts(db *gorm.DB) int {
	if db.Name() == "sqlite" {
		return 0
	}
	return 8
}

// with returns another instance of b's shop, which differs as change says.
func (b *bundle) with(t *testing.T, change func(*order.Config)) *order.Service {
	t.Helper()
	c := b.config
	c.Lockers = maps.Clone(c.Lockers)
	change(&c)
	s, err := order.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// threeShops returns three instances of one shop, with all strategies.
func threeShops(t *testing.T, db *gorm.DB) []*bundle {
	t.Helper()
	backend, lab := lock.NewMemory(), startLab(t, db)
	var shops []*bundle
	for range 3 {
		shops = append(shops, setupIn(t, lab, db, backend, 10*time.Second))
	}
	return shops
}

// atOnce calls f n times, with 0 to n-1, at the same moment, and waits for all.
func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// supply creates a SKU that costs 12.50 EUR.
func (b *bundle) supply(t *testing.T, name string, units int64) {
	t.Helper()
	b.supplyAt(t, stock.Money{Minor: 1250, Currency: "EUR"}, name, units)
}

func (b *bundle) supplyAt(t *testing.T, price stock.Money, name string, units int64) {
	t.Helper()
	sku, err := stock.NewSKU(name, price, units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stock.Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
}

// deliver brings units of a SKU in.
func (b *bundle) deliver(t *testing.T, sku string, units int64) {
	t.Helper()
	d, err := stock.NewDelivery(sku, uuid.NewString(), units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.stock.Supply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// raiseFence makes the database remember a fence that no lease had, of a supply.
func (b *bundle) raiseFence(t *testing.T, name string, fence int64) {
	t.Helper()
	for _, statement := range []string{
		"UPDATE skus SET fence = ? WHERE name = ?",
		"UPDATE movements SET fence = ? WHERE sku = ? AND kind = 'supply'",
	} {
		if err := b.db.Exec(statement, fence, name).Error; err != nil {
			t.Fatal(err)
		}
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
