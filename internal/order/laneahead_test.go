package order_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/store/storetest"
)

// heads tells of orders that are written, and of transactions that are over.
type heads struct {
	*orderstore.Store
	t      *testing.T
	orders chan int   // how many were written
	over   chan error // what came of a transaction
	twice  bool       // a transaction is rolled back and run again, as after a deadlock
	adding func()     // happens before orders are written; nil for nothing
	panics atomic.Bool
}

func (s *heads) InTx(ctx context.Context, fn func(order.Tx) error) error {
	again := errors.New("run again")
	run := func(tx order.Tx) error { return fn(headTx{tx, s}) }
	if s.twice {
		err := s.Store.InTx(ctx, func(tx order.Tx) error {
			if err := run(tx); err != nil {
				return err
			}
			return again
		})
		if !errors.Is(err, again) {
			s.t.Errorf("the first run: %v", err)
		}
	}
	err := s.Store.InTx(ctx, run)
	s.over <- err
	return err
}

type headTx struct {
	order.Tx
	s *heads
}

func (t headTx) Add(orders ...order.Order) error {
	if t.s.panics.Load() {
		panic("boom")
	}
	if t.s.adding != nil {
		t.s.adding()
	}
	err := t.Tx.Add(orders...)
	if len(orders) > 0 {
		t.s.orders <- len(orders)
	}
	return err
}

// aheadFor is how long a head start of a test lasts, so that a slow machine ends none.
const aheadFor = time.Hour

// ahead returns a line with a head start: one mug was sold a moment ago, and the lease
// is held again.
func ahead(t *testing.T, b *bundle, with ...func(*order.Config)) (*line, *heads, *looks) {
	t.Helper()
	s := &heads{Store: b.orders, t: t, orders: make(chan int, 99), over: make(chan error, 99)}
	seen := &looks{Stock: b.stock}
	l := stand(t, b, append(with, func(c *order.Config) {
		c.Store, c.Stock, c.HeadStarts = s, seen, 1
	})...)
	l.shop.SetRecentFor(aheadFor)
	l.join(t.Context(), t, buyAs("first", "key", 1))
	l.serve(t)
	l.want(t, 0, "first", nil)
	l.hold(t)
	s.want(t, 1)
	s.wantOver(t, nil)
	seen.stock = 0
	return l, s, seen
}

// want waits until orders are written.
func (s *heads) want(t *testing.T, orders int) {
	t.Helper()
	select {
	case got := <-s.orders:
		if got != orders {
			t.Errorf("%d orders were written, want %d", got, orders)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("no order was written, want %d", orders)
	}
}

// wantOver waits for the end of a transaction.
func (s *heads) wantOver(t *testing.T, want error) {
	t.Helper()
	select {
	case err := <-s.over:
		if !errors.Is(err, want) {
			t.Errorf("transaction: got %v, want %v", err, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("no transaction ended, want %v", want)
	}
}

// eachServer runs f with a shop of 20 mugs on each server.
func eachServer(t *testing.T, f func(t *testing.T, b *bundle)) {
	t.Helper()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		b := setup(t, kind.New(t, "").Migrated(t), lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 20)
		f(t, b)
	})
}

// "It writes the orders of who stands there and who comes meanwhile", and "then it is
// the transaction of the batch". Who comes when the lease is there is sold to as well.
func TestLanes_headStart(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bundle) {
		l, s, seen := ahead(t, b)
		for _, buyer := range []string{"ann", "bob"} {
			l.join(t.Context(), t, buyAs(buyer, "key", 2))
			s.want(t, 1)
		}
		l.join(t.Context(), t, buyAs("bob", "key", 2)) // the twin of the one before
		b.wantLevel(t, "mug", 19, 1)
		if mine, err := b.Orders(t.Context(), "ann", "", 10); err != nil || len(mine) > 0 {
			t.Errorf("before the lease is there: got %v, %v, want no order", mine, err)
		}
		l.serve(t)
		l.want(t, 1, "ann", nil)
		l.want(t, 2, "bob", nil)
		l.want(t, 3, "bob", nil)
		if diff := cmp.Diff(l.told[2].order, l.told[3].order); diff != "" || !l.told[3].replayed {
			t.Errorf("twin (-first +second), replayed %v:\n%s", l.told[3].replayed, diff)
		}
		s.wantOver(t, nil)
		if seen.stock != 0 || len(s.over)+len(s.orders) > 0 {
			t.Errorf("read the stock %d times, %d more transactions, %d more writes, want none", seen.stock, len(s.over), len(s.orders))
		}
		b.wantLevel(t, "mug", 15, 5)
		b.audit(t, "mug")
	})
}

// "Where it is run again, it writes everything again."
func TestLanes_headStartAgain(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bundle) {
		l, s, _ := ahead(t, b)
		s.twice = true
		for _, buyer := range []string{"ann", "bob"} {
			l.join(t.Context(), t, buyAs(buyer, "key", 2))
			s.want(t, 1)
		}
		l.serve(t)
		s.want(t, 2)
		s.wantOver(t, nil)
		l.want(t, 1, "ann", nil)
		l.want(t, 2, "bob", nil)
		b.wantLevel(t, "mug", 15, 5)
		b.audit(t, "mug")
	})
}

// "Where a buyer leaves the lane, or something turns out to be different, it is rolled
// back, and was in vain": everybody gets the answer of a batch without a head start.
func TestLanes_headStartInVain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// What happens when two mugs each for ann and bob are written; leave lets ann leave.
		meanwhile func(t *testing.T, l *line, s *heads, leave func())
		ann, bob  error
		price     int64
		left      int64 // of the 19 that there were
	}{
		"a buyer leaves": {
			meanwhile: func(_ *testing.T, _ *line, _ *heads, leave func()) { leave() },
			ann:       lock.ErrNotAcquired, price: 1250, left: 17,
		},
		"a buyer leaves, and one comes": {
			meanwhile: func(t *testing.T, l *line, s *heads, leave func()) {
				leave()
				l.join(t.Context(), t, buyAs("eve", "key", 1))
				s.wantOver(t, order.ErrInVain)
			},
			ann: lock.ErrNotAcquired, price: 1250, left: 16,
		},
		"one comes who wants more than there is": {
			meanwhile: func(t *testing.T, l *line, s *heads, _ func()) {
				l.join(t.Context(), t, buyAs("eve", "key", 16))
				s.wantOver(t, order.ErrInVain)
			},
			price: 1250, left: 15,
		},
		"another price": {
			meanwhile: func(t *testing.T, l *line, _ *heads, _ func()) { l.exec(t, "UPDATE skus SET price_minor = 2000") },
			price:     2000, left: 15,
		},
		"a key is used": {
			meanwhile: func(t *testing.T, l *line, _ *heads, _ func()) {
				r := buyAs("ann", "key", 2)
				r.Strategy = "conditional"
				if _, _, err := l.Place(t.Context(), r); err != nil {
					t.Error(err)
				}
			},
			price: 1250, left: 15,
		},
		"a limit": {
			meanwhile: func(t *testing.T, l *line, _ *heads, _ func()) { l.limitPerBuyer(t, "mug", 1) },
			ann:       order.ErrPurchaseLimit, bob: order.ErrPurchaseLimit, left: 19,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachServer(t, func(t *testing.T, b *bundle) {
				l, s, _ := ahead(t, b)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l.join(ctx, t, buyAs("ann", "key", 2))
				s.want(t, 1)
				l.join(t.Context(), t, buyAs("bob", "key", 2))
				s.want(t, 1)
				c.meanwhile(t, l, s, func() {
					cancel()
					awaitQueued(t, l.shop, 1)
				})
				l.serve(t)
				l.want(t, 1, "ann", c.ann)
				l.want(t, 2, "bob", c.bob)
				if got := l.told[2].order.Total.Minor; got != 2*c.price {
					t.Errorf("bob is to pay %d, want %d", got, 2*c.price)
				}
				b.wantLevel(t, "mug", c.left, 20-c.left)
				b.audit(t, "mug")
			})
		})
	}
}

// It is planned by what was seen recently, and "ends when that is no longer good".
func TestLanes_headStartAge(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bundle) {
		l, s, seen := ahead(t, b)
		now := time.Now()
		var age atomic.Int64
		l.shop.SetRecentClock(func() time.Time { return now.Add(time.Duration(age.Load())) })
		age.Store(int64(aheadFor - 50*time.Millisecond))
		l.join(t.Context(), t, buyAs("ann", "key", 2))
		s.wantOver(t, order.ErrInVain)
		age.Store(int64(aheadFor))
		l.serve(t)
		l.want(t, 1, "ann", nil)
		if seen.stock != 1 {
			t.Errorf("read the stock %d times, want once", seen.stock)
		}
		b.wantLevel(t, "mug", 17, 3)
		b.audit(t, "mug")
	})
}

// "Each counts for those behind it, also if it is one of the first few, which are written
// already."
func TestLanes_headStartLimits(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bundle) {
		b.limitPerBuyer(t, "mug", 4)
		l, s, _ := ahead(t, b, func(c *order.Config) { c.MaxOpen = 2 })
		asked := []struct {
			buyer, key string
			units      int64
			want       error
		}{
			{"ann", "1", 2, nil},
			{"ann", "2", 2, nil},
			{"ann", "3", 1, order.ErrTooManyOpen},
			{"bob", "1", 3, nil},
			{"bob", "2", 2, order.ErrPurchaseLimit},
			{"first", "2", 3, nil},
		}
		for _, a := range asked {
			l.join(t.Context(), t, buyAs(a.buyer, a.key, a.units))
			s.want(t, 1)
		}
		l.serve(t)
		for i, a := range asked {
			l.want(t, 1+i, a.buyer, a.want)
		}
		b.wantLevel(t, "mug", 9, 11)
		b.audit(t, "mug")
	})
}

// A lane that gets no lease rolls its head start back, whether it has waited too long or
// is closed.
func TestLanes_headStartNoLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patience time.Duration
		end      func(*line)
		want     error
	}{
		"waited too long": {5 * time.Second, func(*line) {}, lock.ErrTimeout},
		"closed":          {lockWait, func(l *line) { l.shop.Close() }, lock.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
				backend := lock.NewMemory()
				b := setup(t, kind.New(t, "").Migrated(t), backend, 10*time.Second)
				b.supply(t, "mug", 20)
				impatient := lock.New(backend, lock.Options{TTL: 10 * time.Second, MaxWait: c.patience})
				defer func() {
					if err := impatient.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}()
				l, s, _ := ahead(t, b, func(config *order.Config) {
					config.Lockers = map[string]order.Locker{order.RedisLock: impatient, order.MemoryLock: b.shared}
				})
				l.join(t.Context(), t, buyAs("ann", "key", 2))
				s.want(t, 1)
				c.end(l)
				l.all.Wait()
				l.want(t, 1, "", c.want)
				l.shop.Close()
				if err := <-s.over; err == nil {
					t.Error("the head start was committed")
				}
				if err := l.lease.Release(); err != nil {
					t.Error(err)
				}
				b.wantLevel(t, "mug", 19, 1)
				b.audit(t, "mug")
			})
		})
	}
}

// "Batches a lane goes without a head start after one that a buyer who left has made
// vain."
func TestLanes_headStartWithout(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bundle) {
		l, s, _ := ahead(t, b)
		going, leave := context.WithCancel(t.Context())
		l.join(going, t, buyAs("gus", "key", 1))
		s.want(t, 1)
		l.join(t.Context(), t, buyAs("ann", "key", 1))
		s.want(t, 1)
		leave()
		awaitQueued(t, l.shop, 1)
		next := make(chan *lock.Lease, 1)
		s.adding = func() { // for ann: bob comes, and somebody who wants the lease before him
			s.adding = nil
			l.join(t.Context(), t, buyAs("bob", "key", 1))
			l.all.Go(func() {
				lease, err := b.shared.Acquire(t.Context(), "sku:mug")
				if err != nil {
					t.Error(err)
				}
				next <- lease
			})
			awaitQueued(t, b.shared, 1)
		}
		if err := l.lease.Release(); err != nil {
			t.Error(err)
		}
		l.lease = <-next
		awaitQueued(t, b.shared, 1)
		if got := l.shop.HeadStarts(); got != 0 {
			t.Errorf("%d head starts, want none so soon", got)
		}
		l.serve(t)
		l.want(t, 2, "ann", nil)
		l.want(t, 3, "bob", nil)
		b.wantLevel(t, "mug", 17, 3)
		b.audit(t, "mug")
	})
}

// "HeadStarts is how many lanes at a time may begin": the lane of another SKU has none
// while this one does, and gets its orders all the same. A panic gives the place back.
func TestLanes_headStartPlaces(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bundle) {
		b.supply(t, "hat", 20)
		l, s, _ := ahead(t, b)
		s.panics.Store(true)
		l.join(t.Context(), t, buyAs("ann", "1", 1))
		l.serve(t)
		wantPanic(t, l.told[1].err)
		s.panics.Store(false)
		l.hold(t)
		l.join(t.Context(), t, buyAs("ann", "2", 1))
		s.want(t, 1)
		for i := range 2 { // the second could have one
			hat := buy(fmt.Sprint("hat-", i), "hat", 1)
			hat.Strategy = "lanes"
			if _, _, err := l.shop.Place(t.Context(), hat); err != nil {
				t.Errorf("hat: %v", err)
			}
			if got := l.shop.HeadStarts(); got != 1 {
				t.Errorf("%d head starts, want that of the mugs", got)
			}
		}
		l.serve(t)
		l.want(t, 2, "ann", nil)
		b.wantLevel(t, "mug", 18, 2)
		b.audit(t, "mug")
	})
}
