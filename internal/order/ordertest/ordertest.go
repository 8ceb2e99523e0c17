// Package ordertest builds shops on real databases, for tests of how orders are placed.
package ordertest

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/lane"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// Config says how an instance of a shop is wired. Instances with the same DB and Backend are instances of one shop.
type Config struct {
	DB      *store.Store
	Store   order.Store // what the instance sells with; nil for DB
	Backend lock.Backend
	TTL     time.Duration // of leases; 0 means 10 s
	MaxWait time.Duration // for them; 0 means that of a crowd on a busy machine
	MaxOpen int
	Margin  time.Duration // of leases, to start a COMMIT; 0 means a tenth of TTL
	Hold    time.Duration
	Think   time.Duration
	Default string                                // strategy; empty means lanes
	Lockers map[string]strategy.Locker            // further ones, or others
	Wrap    func(strategy.Locker) strategy.Locker // goes around the shared locker; nil for nothing
	Lane    lane.Config                           // what a test sets of it
}

// Shop is one instance.
type Shop struct {
	*order.Service
	Lanes  *lane.Lanes
	DB     *store.Store
	Shared *lock.Locker // stands for the lock that all instances share
	Config Config
}

// New returns an instance over a database, with a lock in memory, and all strategies that need nothing else.
func New(t testing.TB, db *store.Store, change ...func(*Config)) *Shop {
	t.Helper()
	return Config{DB: db, Backend: lock.NewMemory()}.Open(t, change...)
}

// Another returns another instance of the same shop.
func (s *Shop) Another(t testing.TB, change ...func(*Config)) *Shop {
	t.Helper()
	return s.Config.Open(t, change...)
}

// Open returns an instance that closes with the test.
func (c Config) Open(t testing.TB, change ...func(*Config)) *Shop {
	t.Helper()
	if c.Lane.Early == 0 && !c.DB.IsSQLite() {
		c.Lane.Early = 8
	}
	c.Lockers = maps.Clone(c.Lockers)
	for _, f := range change {
		f(&c)
	}
	if c.Store == nil {
		c.Store = c.DB
	}
	ttl, wait := cmp.Or(c.TTL, 10*time.Second), cmp.Or(c.MaxWait, 5*time.Minute)
	s := &Shop{DB: c.DB, Config: c, Shared: lock.New(c.Backend, lock.Options{TTL: ttl, MaxWait: wait})}
	own := lock.New(lock.NewMemory(), lock.Options{MaxWait: wait})

	lockers := map[string]strategy.Locker{
		strategy.RedisLock:  strategy.Lease(s.Shared),
		strategy.MemoryLock: strategy.Lease(own),
	}
	maps.Copy(lockers, c.Lockers)
	if c.Wrap != nil {
		lockers[strategy.RedisLock] = c.Wrap(lockers[strategy.RedisLock])
	}
	shop := strategy.Shop{Store: c.Store, MaxOpen: c.MaxOpen, Margin: cmp.Or(c.Margin, ttl/10)}
	lanes := c.Lane
	lanes.Shop, lanes.Locker = shop, lockers[strategy.RedisLock]
	s.Lanes = lane.New(lanes)

	offers := strategy.Offers(shop, s.Lanes, lockers, nil)
	for i, o := range offers {
		if o.Name == c.Default {
			offers[0], offers[i] = offers[i], offers[0]
		}
	}
	s.Service = order.New(order.Config{Store: c.Store, Offers: offers, Hold: c.Hold, Think: c.Think})
	t.Cleanup(func() {
		s.Lanes.Close()
		for _, l := range []*lock.Locker{s.Shared, own} {
			if err := l.Close(); err != nil {
				t.Errorf("close locker: %v", err)
			}
		}
	})
	return s
}

// EUR is a price.
func EUR(minor int64) stock.Money { return stock.Money{Minor: minor, Currency: "EUR"} }

// Supply creates a SKU that costs 12.50 EUR.
func (s *Shop) Supply(t testing.TB, name string, units int64) {
	t.Helper()
	s.SupplyAt(t, EUR(1250), name, units)
}

// SupplyAt creates a SKU.
func (s *Shop) SupplyAt(t testing.TB, price stock.Money, name string, units int64) {
	t.Helper()
	sku, err := stock.NewSKU(name, price, units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DB.Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
}

// Limit sets a SKU's limit per buyer.
func (s *Shop) Limit(t testing.TB, sku string, units int64) {
	t.Helper()
	if _, err := s.DB.SetLimitPerBuyer(t.Context(), sku, units); err != nil {
		t.Fatal(err)
	}
}

// Exec runs SQL that no shop does.
func (s *Shop) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := s.DB.DB().ExecContext(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Reset empties the shop.
func (s *Shop) Reset(t testing.TB) {
	t.Helper()
	for _, table := range []string{"skus", "orders", "order_lines", "movements", "idempotency_keys", "deliveries"} {
		s.Exec(t, "DELETE FROM "+table)
	}
}

// MustPlace places an order that is expected to be placed anew.
func (s *Shop) MustPlace(t testing.TB, r order.Request) order.Order {
	t.Helper()
	o, replayed, err := s.Place(t.Context(), r)
	if err != nil || replayed {
		t.Fatalf("%s of %s: replayed %v, %v", r.Key, r.Buyer, replayed, err)
	}
	return o
}

// Audit returns the account of a SKU and fails the test on any difference.
func (s *Shop) Audit(t testing.TB, sku string) stock.Account {
	t.Helper()
	var account stock.Account
	err := s.DB.Audit(t.Context(), sku,
		func(a stock.Account) error { account = a; return nil },
		func(d stock.Difference) error { t.Errorf("audit: %+v", d); return nil })
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	return account
}

// WantLevel compares available and reserved units of a SKU.
func (s *Shop) WantLevel(t testing.TB, sku string, available, reserved int64) {
	t.Helper()
	got, err := s.DB.SKU(t.Context(), sku)
	if err != nil || got.Level.Available != available || got.Level.Reserved != reserved {
		t.Errorf("%s: %v, %v, want %d available and %d reserved", sku, got.Level, err, available, reserved)
	}
}

// Buy is a request for units of a SKU.
func Buy(buyer, key, sku string, units int64) order.Request {
	return order.Request{Buyer: buyer, Key: key, Lines: []order.RequestLine{{SKU: sku, Units: units}}}
}

// AtOnce calls f n times, with 0 to n-1, at the same moment, and waits for all.
func AtOnce(n int, f func(i int)) {
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

// Spy is a Store that calls a test around what it does. Its functions may be nil.
type Spy struct {
	order.Store
	BeforeLevels func()
	AfterLevels  func()
	BeforeClaims func()
	BeforeTx     func() error // its error is the transaction's
	AfterTx      func(err error)
	AroundTx     func(order.Tx) order.Tx
	BeforeCommit func()
	RefuseCommit error                 // instead of the COMMIT
	Answer       func(err error) error // another answer to the transaction
}

// Levels implements order.Store.
func (s *Spy) Levels(ctx context.Context, skus []string) (order.Levels, error) {
	if len(order.Requests(ctx)) == 0 { // it is no step of a purchase
		return s.Store.Levels(ctx, skus)
	}
	call(s.BeforeLevels)
	levels, err := s.Store.Levels(ctx, skus)
	call(s.AfterLevels)
	return levels, err
}

// Claims implements order.Store.
func (s *Spy) Claims(ctx context.Context, keys ...order.BuyerKey) (map[order.BuyerKey]order.Claim, error) {
	call(s.BeforeClaims)
	return s.Store.Claims(ctx, keys...)
}

// InTx implements order.Store.
func (s *Spy) InTx(ctx context.Context, placed *order.Draft, fn func(order.Tx) error) error {
	if s.BeforeTx != nil {
		if err := s.BeforeTx(); err != nil {
			return err
		}
	}
	err := s.Store.InTx(ctx, placed, func(tx order.Tx) error {
		if s.AroundTx != nil {
			tx = s.AroundTx(tx)
		}
		err := fn(tx)
		if err == nil {
			call(s.BeforeCommit)
		}
		return cmp.Or(err, s.RefuseCommit)
	})
	if s.Answer != nil {
		err = s.Answer(err)
	}
	if s.AfterTx != nil {
		s.AfterTx(err)
	}
	return err
}

func call(f func()) {
	if f != nil {
		f()
	}
}
