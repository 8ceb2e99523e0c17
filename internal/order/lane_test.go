package order_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// line is a lane of mugs in front of which the lease is held, so that a test says
// who is in the next batch.
type line struct {
	*bundle
	shop  *order.Service
	gate  *gate // around the transactions of shop
	begun atomic.Int64
	lease *lock.Lease

	all  sync.WaitGroup
	told []*told // by the order of arrival; of those who have left the lane
}

// told is what a buyer was answered.
type told struct {
	order    order.Order
	replayed bool
	err      error
}

// stand returns the line of an instance of b's shop. Each of with may change how it
// is set up.
func stand(t *testing.T, b *bundle, with ...func(*order.Config)) *line {
	t.Helper()
	l := &line{bundle: b, gate: &gate{Store: b.orders}}
	l.gate.before = func() { l.begun.Add(1) }
	c := b.config
	c.Store = l.gate
	for _, change := range with {
		change(&c)
	}
	var err error
	if l.shop, err = order.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.shop.Close)
	l.hold(t)
	return l
}

// hold takes the lease, so that the lane has to wait.
func (l *line) hold(t *testing.T) {
	t.Helper()
	var err error
	if l.lease, err = l.shared.Acquire(t.Context(), "sku:mug"); err != nil {
		t.Fatal(err)
	}
}

// join puts a request at the end of the lane.
func (l *line) join(ctx context.Context, t *testing.T, r order.Request) {
	t.Helper()
	r.Strategy = "lanes"
	answer, before := new(told), l.shop.Queued()
	l.told = append(l.told, answer)
	l.all.Go(func() { answer.order, answer.replayed, answer.err = l.shop.Place(ctx, r) })
	awaitQueued(t, l.shop, before+1)
}

// serve lets the lane have the lease and waits for all answers.
func (l *line) serve(t *testing.T) {
	t.Helper()
	if err := l.lease.Release(); err != nil {
		t.Error(err)
	}
	l.all.Wait()
}

// wantBegun compares how many transactions there were.
func (l *line) wantBegun(t *testing.T, want int64) {
	t.Helper()
	if got := l.begun.Load(); got != want {
		t.Errorf("%d transactions, want %d", got, want)
	}
}

// want compares an answer: an order of its own buyer, or an error.
func (l *line) want(t *testing.T, i int, by string, want error) {
	t.Helper()
	got := l.told[i]
	if !errors.Is(got.err, want) {
		t.Errorf("%d: got %v, want %v", i, got.err, want)
	}
	if want == nil && got.order.Buyer != by {
		t.Errorf("%d: got the order of %q, want that of %q", i, got.order.Buyer, by)
	}
}

// awaitQueued waits until so many stand in the lanes of a Service, or wait for the
// leases of a Locker.
func awaitQueued(t *testing.T, where interface{ Queued() int }, want int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); where.Queued() != want; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d are queued, want %d", where.Queued(), want)
		}
	}
}

func buyAs(buyer, key string, units int64) order.Request {
	r := buy(key, "mug", units)
	r.Buyer = buyer
	return r
}

// "whoever has the lease sells to everyone in the line at once: one lease and one
// commit": those who stand in the line together cost one transaction, and each is
// told of its own order.
func TestLanes_oneTransaction(t *testing.T) {
	t.Parallel()
	const buyers, units = 200, 120
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", units)
		l := stand(t, b)
		for i := range buyers {
			l.join(t.Context(), t, buyAs(fmt.Sprint("buyer-", i), "key", 1))
		}
		l.serve(t)
		for i := range buyers {
			var want error
			if i >= units { // in the order of arrival
				want = stock.ErrSoldOut
			}
			l.want(t, i, fmt.Sprint("buyer-", i), want)
			if again, err := b.Order(t.Context(), fmt.Sprint("buyer-", i), l.told[i].order.ID); want == nil {
				if diff := cmp.Diff(l.told[i].order, again); diff != "" || err != nil {
					t.Errorf("%d: %v (-told +there):\n%s", i, err, diff)
				}
			}
		}
		l.wantBegun(t, 1)
		b.wantLevel(t, "mug", 0, units)
		b.audit(t, "mug")
	})
}

// 512 buyers at once, on three instances: exactly the stock is sold.
func TestLanes_crowd(t *testing.T) {
	t.Parallel()
	const buyers, units = 512, 400
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		shops[0].supply(t, "mug", units)
		var sold, refused atomic.Int64
		atOnce(buyers, func(i int) {
			r := buyAs(fmt.Sprint("buyer-", i), "key", 1)
			r.Strategy = "lanes"
			o, replayed, err := shops[i%3].Place(t.Context(), r)
			switch {
			case err == nil && o.Buyer == r.Buyer && !replayed:
				sold.Add(1)
			case errors.Is(err, stock.ErrSoldOut):
				refused.Add(1)
			default:
				t.Errorf("%s: got %+v, replayed %v, %v", r.Buyer, o, replayed, err)
			}
		})
		if sold.Load() != units || refused.Load() != buyers-units {
			t.Errorf("%d sold, %d refused, want %d and %d", sold.Load(), refused.Load(), units, buyers-units)
		}
		if a := shops[0].audit(t, "mug"); a.Orders != units || a.Level.Available != 0 {
			t.Errorf("account %+v, want %d orders", a, units)
		}
	})
}

// "One buyer's bad luck never fails the others."
func TestLanes_badLuck(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 20)
		first := b.place(t, "first", "mug", 1) // by ann
		l := stand(t, b)
		going, leave := context.WithCancel(t.Context())

		l.join(t.Context(), t, buyAs("bob", "key", 2))
		l.join(t.Context(), t, buyAs("ann", "first", 1)) // again
		l.join(t.Context(), t, buyAs("ann", "first", 3)) // another request
		l.join(going, t, buyAs("gus", "key", 1))
		l.join(t.Context(), t, buyAs("max", "key", 100)) // too much
		l.join(t.Context(), t, buyAs("bob", "key", 2))   // the twin of the first
		l.join(t.Context(), t, buyAs("bob", "key", 3))   // the key of the first
		l.join(t.Context(), t, buyAs("eve", "key", 2))
		leave()
		awaitQueued(t, l.shop, 7)
		l.serve(t)

		for i, c := range []struct {
			buyer    string
			replayed bool
			err      error
		}{
			{buyer: "bob"}, {buyer: "ann", replayed: true}, {err: order.ErrKeyReused}, {err: context.Canceled}, {err: stock.ErrSoldOut},
			{buyer: "bob", replayed: true}, {err: order.ErrKeyReused}, {buyer: "eve"},
		} {
			l.want(t, i, c.buyer, c.err)
			if l.told[i].replayed != c.replayed {
				t.Errorf("%d: replayed %v, want %v", i, l.told[i].replayed, c.replayed)
			}
		}
		if diff := cmp.Diff(first, l.told[1].order); diff != "" {
			t.Errorf("replay (-first +again):\n%s", diff)
		}
		if diff := cmp.Diff(l.told[0].order, l.told[5].order); diff != "" {
			t.Errorf("twin (-first +second):\n%s", diff)
		}
		if !errors.Is(l.told[3].err, lock.ErrNotAcquired) {
			t.Errorf("gone: got %v, want an ErrNotAcquired: nothing was changed", l.told[3].err)
		}
		l.wantBegun(t, 1)
		b.wantLevel(t, "mug", 15, 5)
		b.audit(t, "mug")
		for _, free := range []order.Request{buyAs("gus", "key", 1), buyAs("max", "key", 1)} {
			if _, replayed, err := b.Place(t.Context(), free); err != nil || replayed {
				t.Errorf("%s again: replayed %v, %v, want a key that was left free", free.Buyer, replayed, err)
			}
		}
	})
}

// "in the order of arrival. One that wants more than is left is sold out; a
// smaller one behind it may still fit."
func TestLanes_arrival(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 6)
		l := stand(t, b)
		wishes := []struct {
			units int64
			want  error
		}{{3, nil}, {4, stock.ErrSoldOut}, {2, nil}, {2, stock.ErrSoldOut}, {1, nil}, {1, stock.ErrSoldOut}}
		for i, w := range wishes {
			l.join(t.Context(), t, buyAs(fmt.Sprint("buyer-", i), "key", w.units))
		}
		l.serve(t)
		for i, w := range wishes {
			l.want(t, i, fmt.Sprint("buyer-", i), w.want)
		}
		b.wantLevel(t, "mug", 0, 6)
		b.audit(t, "mug")
	})
}
