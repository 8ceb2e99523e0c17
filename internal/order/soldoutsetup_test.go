package order_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
)

// rememberer is an instance that remembers for a second, by a clock that the test
// moves, and counts what it asks.
type rememberer struct {
	*order.Service
	stock *countedStock
	store *countedStore

	leases, refused atomic.Int64

	mu  sync.Mutex
	now time.Time
}

type countedStock struct {
	order.Stock
	reads atomic.Int64
	after func() // a read; nil for nothing
}

func (s *countedStock) SKUs(ctx context.Context, names []string) ([]stock.SKU, time.Time, error) {
	s.reads.Add(1)
	skus, now, err := s.Stock.SKUs(ctx, names)
	if s.after != nil {
		s.after()
	}
	return skus, now, err
}

type countedStore struct {
	*orderstore.Store
	placed, keys atomic.Int64
	more         int    // keys that KeysOf tells of beside those that are there
	afterKeys    func() // nil for nothing
}

func (s *countedStore) PlacedAll(ctx context.Context, keys []order.BuyerKey) (map[order.BuyerKey]order.Claim, error) {
	s.placed.Add(1)
	return s.Store.PlacedAll(ctx, keys)
}

func (s *countedStore) KeysOf(ctx context.Context, sku string, limit int, found func(order.BuyerKey)) error {
	s.keys.Add(1)
	for i := range s.more {
		found(order.BuyerKey{Buyer: "another", Key: fmt.Sprint(i)})
	}
	err := s.Store.KeysOf(ctx, sku, limit, found)
	if s.afterKeys != nil {
		s.afterKeys()
	}
	return err
}

type countedLocker struct {
	order.Locker
	leases *atomic.Int64
}

func (l countedLocker) Do(ctx context.Context, key string, fn func(context.Context, *lock.Lease) error) error {
	l.leases.Add(1)
	return l.Locker.Do(ctx, key, fn)
}

// remembering returns an instance of b's shop that hears.
func remembering(t *testing.T, b *bundle) *rememberer {
	t.Helper()
	r := &rememberer{stock: &countedStock{Stock: b.stock}, store: &countedStore{Store: b.orders}, now: time.Now()}
	r.Service = b.with(t, func(c *order.Config) {
		c.SoldOutFor = time.Second
		c.Stock, c.Store = r.stock, r.store
		c.Lockers[order.RedisLock] = countedLocker{b.shared, &r.leases}
		c.OnRefused = func() { r.refused.Add(1) }
	})
	r.SetSoldOutClock(func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.now
	})
	t.Cleanup(r.Close)
	r.Hears(true)
	return r
}

func (r *rememberer) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// asked returns how often database and lock were asked so far.
func (r *rememberer) asked() int64 {
	return r.stock.reads.Load() + r.store.placed.Load() + r.store.keys.Load() + r.leases.Load()
}

// wants asks for one mug; the buyer's name is the key, too.
func (r *rememberer) wants(t *testing.T, buyer string, want error) (placed order.Order, replayed bool) {
	t.Helper()
	wish := buyAs(buyer, buyer, 1)
	wish.Strategy = "lanes"
	placed, replayed, err := r.Place(t.Context(), wish)
	if !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want %v", buyer, err, want)
	}
	return placed, replayed
}

// learns lets the instance find out that there are no mugs, and returns when it
// knows. The buyer is answered before, and one who asks again after. Where the machine
// stood still meanwhile, the keys were not read in time: it tries again later.
func (r *rememberer) learns(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; r.wait(order.LearnAgain) {
		r.wants(t, "finder", stock.ErrSoldOut)
		r.wants(t, "finder", stock.ErrSoldOut)
		if r.SoldOut(buyAs("anybody", "new", 1)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not learn that nothing is left")
		}
	}
}

func (r *rememberer) wantKnown(t *testing.T, want bool) {
	t.Helper()
	if got := r.SoldOut(buyAs("anybody", "new", 1)); got != want {
		t.Fatalf("known to be sold out: %v, want %v", got, want)
	}
}
