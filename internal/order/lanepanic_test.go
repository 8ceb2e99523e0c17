package order_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// boomStore panics, while it is armed, where a test says.
type boomStore struct {
	order.Store
	where string
	armed atomic.Bool
}

func (s *boomStore) at(where string) {
	if s.where == where && s.armed.Load() {
		panic("boom")
	}
}

func (s *boomStore) PlacedAll(ctx context.Context, keys []order.BuyerKey) (map[order.BuyerKey]order.Claim, error) {
	s.at("keys")
	return s.Store.PlacedAll(ctx, keys)
}

func (s *boomStore) InTx(ctx context.Context, fn func(order.Tx) error) error {
	s.at("begin")
	defer s.at("answer")
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		err := fn(tx)
		s.at("commit")
		return err
	})
}

// boomLocker panics, while it is armed, before there is a lease.
type boomLocker struct {
	order.Locker
	store *boomStore
}

func (l boomLocker) Do(ctx context.Context, key string, fn func(context.Context, *lock.Lease) error) error {
	l.store.at("lock")
	return l.Locker.Do(ctx, key, fn)
}

// "A leader serves many buyers, none of whom may be left without an answer, or
// without a leader, because something panicked": each is told, the panic is
// reported once with its stack, the lease is free, and the same requests again get
// one outcome each.
func TestLanes_panic(t *testing.T) {
	t.Parallel()
	const buyers = 5
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for _, where := range []string{"lock", "keys", "begin", "commit", "answer"} {
			t.Run(where, func(t *testing.T) {
				b := setup(t, db, lock.NewMemory(), 10*time.Second)
				reset(t, db)
				b.supply(t, "mug", 2*buyers)
				boom := &boomStore{Store: b.orders, where: where}
				var panics atomic.Int64
				l := stand(t, b, func(c *order.Config) {
					c.Store = boom
					c.Lockers = map[string]order.Locker{order.RedisLock: boomLocker{b.shared, boom}, order.MemoryLock: b.shared}
					c.OnPanic = func(err error) {
						panics.Add(1)
						if text := err.Error(); !strings.Contains(text, "panic: boom") || !strings.Contains(text, "boomStore") {
							t.Errorf("reported %v, want the panic and its stack", err)
						}
					}
				})
				for i := range buyers {
					l.join(t.Context(), t, buyAs(fmt.Sprint("buyer-", i), "key", 1))
				}
				boom.armed.Store(true)
				if where == "lock" { // whose leader is past it, and waits: the next one meets it
					boom.armed.Store(false)
					l.serve(t)
					l.told = nil
					boom.armed.Store(true)
					atOnce(buyers, func(i int) {
						r := buyAs(fmt.Sprint("late-", i), "key", 1)
						r.Strategy = "lanes"
						_, _, err := l.shop.Place(t.Context(), r)
						wantPanic(t, err)
					})
				} else {
					l.serve(t)
				}
				boom.armed.Store(false)
				for _, told := range l.told {
					wantPanic(t, told.err)
				}
				if got := panics.Load(); got != 1 && where != "lock" || got == 0 { // there, once for each try
					t.Errorf("reported %d times, want it once", got)
				}
				for i := range buyers {
					r := buyAs(fmt.Sprint("buyer-", i), "key", 1)
					r.Strategy = "lanes"
					_, replayed, err := l.shop.Place(t.Context(), r)
					if there := where == "answer" || where == "lock"; err != nil || replayed != there {
						t.Errorf("%s again: replayed %v, %v, want replayed %v", r.Buyer, replayed, err, there)
					}
				}
				b.wantLevel(t, "mug", buyers, buyers)
				b.audit(t, "mug")
			})
		}
	})
}

// So it is where OnRefused panics for those who are refused behind a batch: they are
// told, the panic is reported, and the lane goes on.
func TestLanes_panicOfOnRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.Kinds()[0].New(t, "").Migrated(t), lock.NewMemory(), 10*time.Second)
	b.supply(t, "mug", 0)
	looked, goOn := make(chan struct{}), make(chan struct{})
	looks := &countedStock{Stock: b.stock, after: sync.OnceFunc(func() {
		close(looked)
		<-goOn
	})}
	var armed atomic.Bool
	armed.Store(true)
	var panics atomic.Int64
	shop := b.with(t, func(c *order.Config) {
		c.SoldOutFor, c.Stock = time.Hour, looks
		c.OnRefused = func() {
			if armed.CompareAndSwap(true, false) {
				panic("boom")
			}
		}
		c.OnPanic = func(error) { panics.Add(1) }
	})
	t.Cleanup(shop.Close)
	shop.Hears(true)
	var all sync.WaitGroup
	asks := func(buyer string) {
		r := buyAs(buyer, "key", 1)
		r.Strategy = "lanes"
		if _, _, err := shop.Place(t.Context(), r); !errors.Is(err, stock.ErrSoldOut) {
			t.Errorf("%s: got %v, want ErrSoldOut", buyer, err)
		}
	}
	all.Go(func() { asks("first") })
	<-looked
	for _, buyer := range []string{"behind", "behind-too"} {
		all.Go(func() { asks(buyer) })
	}
	awaitQueued(t, shop, 2)
	shop.Heard("mug") // so that the leader does not learn by itself, in time or not
	shop.Remember("mug", 0)
	close(goOn)
	all.Wait()
	shop.Heard("mug")
	asks("later")
	if armed.Load() || panics.Load() != 1 {
		t.Errorf("panicked: %v, reported %d times; want it once", !armed.Load(), panics.Load())
	}
}

func wantPanic(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "panic: boom") || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("got %v, want the panic without its stack", err)
	}
}
