package order_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
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

func wantPanic(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "panic: boom") || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("got %v, want the panic without its stack", err)
	}
}
