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
}

func (l *looks) SKUs(ctx context.Context, names []string) ([]stock.SKU, time.Time, error) {
	l.stock++
	return l.Stock.SKUs(ctx, names)
}

func (l *looks) PlacedAll(ctx context.Context, keys []order.BuyerKey) (map[order.BuyerKey]order.Claim, error) {
	l.keys++
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

// deliver brings units of a SKU in.
func (b *bundle) deliver(t *testing.T, sku string, units int64) {
	t.Helper()
	d, err := stock.NewDelivery(sku, "delivery", units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.stock.Supply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
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
	// What happens on another instance, what is asked for then, and how often that
	// looks and begins a transaction.
	cases := map[string]struct {
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

// "recentSKUs": however many are sold, no more are kept.
func TestLanes_recentBound(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		if kind.Server {
			t.Skip("a bound of this process: one database will do")
		}
		b := setup(t, kind.New(t, "").Migrated(t), lock.NewMemory(), 10*time.Second)
		for i := range order.RecentSKUs + 3 {
			name := fmt.Sprint("mug-", i)
			b.supply(t, name, 1)
			r := buyAs("ann", name, 1)
			r.Lines[0].SKU = name
			if _, _, err := b.Place(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.SeenRecently(); got != order.RecentSKUs {
			t.Errorf("%d SKUs are kept, want %d", got, order.RecentSKUs)
		}
	})
}
