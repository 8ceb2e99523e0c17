package order_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// looks counts how often an instance reads the stock and looks at keys.
type looks struct {
	order.Stock
	*orderstore.Store
	stock, keys, begun int
	atKeys             func() // happens while keys are looked at; nil for nothing
}

func (l *looks) SKUs(ctx context.Context, names []string) ([]stock.SKU, time.Time, error) {
	l.stock++
	return l.Stock.SKUs(ctx, names)
}

func (l *looks) PlacedAll(ctx context.Context, keys []order.BuyerKey) (map[order.BuyerKey]order.Claim, error) {
	l.keys++
	if l.atKeys != nil {
		l.atKeys()
	}
	return l.Store.PlacedAll(ctx, keys)
}

func (l *looks) InTx(ctx context.Context, fn func(order.Tx) error) error {
	l.begun++
	return l.Store.InTx(ctx, fn)
}

// recently returns an instance of b's shop that has just sold a mug by a lane, and
// whose clock for what it has seen last stands still.
func recently(t *testing.T, b *bundle) (*order.Service, *looks) {
	t.Helper()
	seen := &looks{Stock: b.stock, Store: b.orders}
	s := b.with(t, func(c *order.Config) { c.Stock, c.Store = seen, seen })
	t.Cleanup(s.Close)
	now := time.Now()
	s.SetRecentClock(func() time.Time { return now })
	if _, _, err := s.Place(t.Context(), buyAs("first", "first", 1)); err != nil {
		t.Fatal(err)
	}
	seen.want(t, "first", 1, 1, 1)
	return s, seen
}

// want compares what was done since the last call.
func (l *looks) want(t *testing.T, what string, stock, keys, begun int) {
	t.Helper()
	if l.stock != stock || l.keys != keys || l.begun != begun {
		t.Errorf("%s: read the stock %d times, the keys %d times, in %d transactions, want %d, %d and %d", what, l.stock, l.keys, l.begun, stock, keys, begun)
	}
	l.stock, l.keys, l.begun = 0, 0, 0
}

func (b *bundle) exec(t *testing.T, sql string) {
	t.Helper()
	if err := b.db.Exec(sql).Error; err != nil {
		t.Fatal(err)
	}
}

// "A batch that can have all it wants by what the one before has seen asks nothing":
// neither the stock nor the keys, until the second is over.
func TestLanes_recent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		s, seen := recently(t, b)
		for i := range 3 {
			ctx, trace := order.WithTrace(t.Context())
			if _, replayed, err := s.Place(ctx, buyAs("ann", fmt.Sprint(i), 2)); err != nil || replayed {
				t.Fatalf("replayed %v, %v", replayed, err)
			}
			seen.want(t, fmt.Sprint(i), 0, 0, 1)
			var steps []string
			for _, step := range trace.Steps() {
				steps = append(steps, step.Name)
			}
			if diff := cmp.Diff([]string{"begun", "lock-asked", "lock-held", "writing", "written", "committed"}, steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		}
		later := time.Now().Add(order.RecentFor)
		s.SetRecentClock(func() time.Time { return later })
		if _, _, err := s.Place(t.Context(), buyAs("ann", "later", 1)); err != nil {
			t.Fatal(err)
		}
		seen.want(t, "later", 1, 1, 1)
		b.wantLevel(t, "mug", 2, 8)
		b.audit(t, "mug")
	})
}

// "Where it is wrong, and where by what it tells somebody would be refused, the batch
// looks": nothing is sold, refused or priced by what was true before.
func TestLanes_recentIsWrong(t *testing.T) {
	t.Parallel()
	// What is so before and what happens on another instance after the lane looked, what
	// is asked for then, and how often that looks and begins a transaction.
	cases := map[string]struct {
		known     func(t *testing.T, b *bundle)
		meanwhile func(t *testing.T, b *bundle)
		ask       order.Request
		looks     int
		begun     int
		want      error
		replayed  bool
		total     int64
	}{
		"nothing changed":      {ask: buyAs("ann", "key", 4), begun: 1, total: 4 * 1250},
		"more than there were": {ask: buyAs("ann", "key", 5), looks: 1, want: stock.ErrSoldOut},
		"sold elsewhere": {
			meanwhile: func(t *testing.T, b *bundle) { b.place(t, "other", "mug", 3) },
			ask:       buyAs("bob", "key", 2), looks: 1, begun: 1, want: stock.ErrSoldOut,
		},
		"sold elsewhere, in part": {
			meanwhile: func(t *testing.T, b *bundle) { b.place(t, "other", "mug", 3) },
			ask:       buyAs("bob", "key", 1), begun: 1, total: 1250,
		},
		"came back": {
			meanwhile: func(t *testing.T, b *bundle) { b.deliver(t, "mug", 3) },
			ask:       buyAs("ann", "key", 7), looks: 1, begun: 1, total: 7 * 1250,
		},
		"price": {
			meanwhile: func(t *testing.T, b *bundle) { b.exec(t, "UPDATE skus SET price_minor = 2000") },
			ask:       buyAs("ann", "key", 2), looks: 1, begun: 2, total: 4000,
		},
		"currency": {
			meanwhile: func(t *testing.T, b *bundle) { b.exec(t, "UPDATE skus SET currency = 'CHF'") },
			ask:       buyAs("ann", "key", 2), looks: 1, begun: 2, total: 2500,
		},
		"limit": {
			meanwhile: func(t *testing.T, b *bundle) { b.limitPerBuyer(t, "mug", 1) },
			ask:       buyAs("ann", "key", 2), looks: 1, begun: 2, want: order.ErrPurchaseLimit,
		},
		"price, and sold elsewhere": {
			meanwhile: func(t *testing.T, b *bundle) {
				b.place(t, "other", "mug", 4)
				b.exec(t, "UPDATE skus SET price_minor = 2000")
			},
			ask: buyAs("bob", "key", 1), looks: 1, begun: 1, want: stock.ErrSoldOut,
		},
		"again":            {ask: buyAs("first", "first", 1), looks: 1, begun: 1, replayed: true, total: 1250},
		"again, otherwise": {ask: buyAs("first", "first", 2), looks: 1, begun: 1, want: order.ErrKeyReused},
		"a limit that is known": {
			known: func(t *testing.T, b *bundle) { b.limitPerBuyer(t, "mug", 2) },
			ask:   buyAs("first", "key", 2), begun: 1, want: order.ErrPurchaseLimit,
		},
		"again, at the limit": {
			known: func(t *testing.T, b *bundle) { b.limitPerBuyer(t, "mug", 1) },
			ask:   buyAs("first", "first", 1), looks: 1, begun: 1, replayed: true, total: 1250,
		},
		"again, and sold out": {
			meanwhile: func(t *testing.T, b *bundle) { b.place(t, "other", "mug", 4) },
			ask:       buyAs("first", "first", 1), looks: 1, begun: 1, replayed: true, total: 1250,
		},
	}
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				b := setup(t, db, lock.NewMemory(), 10*time.Second)
				reset(t, db)
				b.supply(t, "mug", 5)
				if c.known != nil {
					c.known(t, b)
				}
				s, seen := recently(t, b)
				if c.meanwhile != nil {
					c.meanwhile(t, b)
				}
				o, replayed, err := s.Place(t.Context(), c.ask)
				if !errors.Is(err, c.want) || replayed != c.replayed || o.Total.Minor != c.total {
					t.Errorf("got a total of %d, replayed %v, %v, want %d, %v, %v", o.Total.Minor, replayed, err, c.total, c.replayed, c.want)
				}
				seen.want(t, name, c.looks, c.looks, c.begun)
				b.audit(t, "mug")
			})
		}
	})
}

// "Where by what it tells somebody could not be sold what they want, the batch looks":
// also if the others could, and nobody in a batch keeps them from it.
func TestLanes_recentBatch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 3)
		var seen *looks
		l := stand(t, b, func(c *order.Config) {
			seen = &looks{Stock: b.stock, Store: b.orders}
			c.Stock, c.Store, c.HeadStarts = seen, seen, 0 // which would be further transactions
		})
		now := time.Now()
		l.shop.SetRecentClock(func() time.Time { return now })
		serve := func(what string, looked, begun int, wishes ...order.Request) {
			if l.lease == nil {
				l.hold(t)
			}
			for _, w := range wishes {
				l.join(t.Context(), t, w)
			}
			l.serve(t)
			l.lease = nil
			seen.want(t, what, looked, looked, begun)
		}
		serve("first", 1, 1, buyAs("first", "first", 1))
		b.deliver(t, "mug", 5) // 7 are left; 2 are known
		serve("more than are known", 1, 1, buyAs("ann", "1", 1), buyAs("bob", "1", 4))
		serve("as many", 0, 1, buyAs("ann", "2", 1), buyAs("bob", "2", 1))
		b.deliver(t, "mug", 5) // 5 are left; none is known
		serve("more again", 1, 1, buyAs("zoe", "1", 1))
		serve("a replay among them", 1, 2, buyAs("ann", "3", 1), buyAs("bob", "2", 1), buyAs("eve", "3", 1))
		for i, by := range []string{"first", "ann", "bob", "ann", "bob", "zoe", "ann", "bob", "eve"} {
			l.want(t, i, by, nil)
			if replay := i == 7; l.told[i].replayed != replay {
				t.Errorf("%d: replayed %v, want %v", i, l.told[i].replayed, replay)
			}
		}
		b.wantLevel(t, "mug", 2, 11)
		b.audit(t, "mug")
	})
}

// "For a second", from when the stock was read, however long the keys take.
func TestLanes_recentAge(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		b, set := shopAt(t, kind)
		set(2_000_000_000)
		seen, now := &looks{Stock: b.stock, Store: b.orders}, time.Now()
		s := b.with(t, func(c *order.Config) { c.Stock, c.Store = seen, seen })
		t.Cleanup(s.Close)
		s.SetRecentClock(func() time.Time { return now })
		seen.atKeys = func() { now = now.Add(order.RecentFor / 2) }
		for i, c := range []struct {
			after time.Duration
			want  time.Duration
		}{{0, 0}, {order.RecentFor / 4, order.RecentFor * 3 / 4}, {order.RecentFor / 4, 0}} {
			now = now.Add(c.after)
			o, _, err := s.Place(t.Context(), buyAs("ann", fmt.Sprint(i), 1))
			if err != nil {
				t.Fatal(err)
			}
			wantTimes(t, o, time.Unix(2_000_000_000, 0).Add(c.want))
		}
	})
}
