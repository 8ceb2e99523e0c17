package order_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "Never oversold, by every strategy that Promises it", and never undersold: 40
// buyers, 10 units, three instances.
func TestService_Place_neverOversold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		for _, s := range offered(shops[0]) {
			if !s.Promises {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				name := "mug-" + s.Name
				shops[0].supply(t, name, 10)
				atOnce(40, func(i int) {
					r := buy(fmt.Sprint(s.Name, i), name, 1)
					r.Strategy = s.Name
					_, _, err := shops[i%3].Place(t.Context(), r)
					if err != nil && !errors.Is(err, stock.ErrSoldOut) {
						t.Errorf("Place: %v", err)
					}
				})
				a := shops[0].audit(t, name)
				if want := (stock.Level{Supplied: 10, Reserved: 10}); a.Level != want || a.Orders != 10 {
					t.Errorf("%d orders, level %+v; want 10 and %+v", a.Orders, a.Level, want)
				}
			})
		}
	})
}

// The mistake that the load test shows, the same every time: two buyers read the
// same stock before either writes, and both are sold the one unit.
func TestService_Place_lostUpdate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 1)
		first, second := buy("first", "mug", 1), buy("second", "mug", 1)
		first.Strategy, second.Strategy = "none", "none"
		b.stock.afterRead = func() {
			if _, _, err := b.Place(t.Context(), second); err != nil {
				t.Errorf("second: %v", err)
			}
		}
		if _, _, err := b.Place(t.Context(), first); err != nil {
			t.Errorf("first: %v", err)
		}
		var account stock.Account
		differences := 0
		err := b.orders.Audit(t.Context(), "mug",
			func(a stock.Account) error { account = a; return nil },
			func(stock.Difference) error { differences++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if account.Oversold() != 1 || account.Level.Available != 0 || differences == 0 {
			t.Errorf("account %+v with %d differences, want 1 oversold though the level reads zero", account, differences)
		}
	})
}

// "The commit is not started with too little of the lease left", and "A refused
// order changes no row."
func TestService_Place_tooLate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		late := b.with(t, func(c *order.Config) { c.CommitMargin = time.Minute }) // longer than any lease
		b.supply(t, "mug", 1)
		if _, _, err := late.Place(t.Context(), buy("key", "mug", 1)); !errors.Is(err, order.ErrTooLate) {
			t.Errorf("Place: %v, want ErrTooLate", err)
		}
		if a := b.audit(t, "mug"); a.Orders != 0 || a.Level.Available != 1 {
			t.Errorf("account %+v after a refusal", a)
		}
		if _, replayed, err := b.Place(t.Context(), buy("key", "mug", 1)); err != nil || replayed {
			t.Errorf("the same key in time: replayed %v, %v", replayed, err)
		}
	})
}

// A database that has seen a higher fence than the lock's store remembers costs
// a retry, not the order.
func TestService_Place_overtakesFence(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 2)
		ahead := time.Now().Add(time.Hour).UnixMicro()
		b.raiseFence(t, "mug", ahead)
		for i := range 2 {
			if _, _, err := b.Place(t.Context(), buy(fmt.Sprint(i), "mug", 1)); err != nil {
				t.Fatalf("Place: %v", err)
			}
		}
		sku, err := b.stock.SKU(t.Context(), "mug")
		if err != nil {
			t.Fatal(err)
		}
		if sku.Fence <= ahead+1 {
			t.Errorf("fence %d, want above %d", sku.Fence, ahead+1)
		}
		b.audit(t, "mug")
	})
}

// Where the lock's store cannot give a higher fence, nothing was sold, and asking
// again is safe.
func TestService_Place_overtakesInVain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		tap := locktest.NewTap(lock.NewMemory())
		b := setup(t, db, tap, 10*time.Second)
		b.supply(t, "mug", 1)
		b.stock.afterRead = func() {
			b.raiseFence(t, "mug", time.Now().Add(time.Hour).UnixMicro())
			b.stock.afterRead = tap.Cut
		}
		_, _, err := b.Place(t.Context(), buy("key", "mug", 1))
		if !errors.Is(err, lock.ErrNoAnswer) || !errors.Is(err, locktest.ErrCut) {
			t.Errorf("Place: %v, want ErrNoAnswer and why", err)
		}
		if a := b.audit(t, "mug"); a.Orders != 0 || a.Level.Available != 1 {
			t.Errorf("account %+v after a refusal", a)
		}
	})
}

// A holder that was cut off from the lock's store while it held the lease sells
// nothing after its time; the next one does.
func TestService_Place_leaseLost(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		backend := lock.NewMemory()
		tap := locktest.NewTap(backend)
		cutOff := setup(t, db, tap, time.Second) // that long the other waits
		healthy := setup(t, db, backend, 10*time.Second)
		healthy.supply(t, "mug", 5)
		cutOff.stock.afterRead = func() {
			tap.Cut()
			if _, _, err := healthy.Place(t.Context(), buy("healthy", "mug", 1)); err != nil {
				t.Errorf("the other instance: %v", err)
			}
		}
		_, _, err := cutOff.Place(t.Context(), buy("cut off", "mug", 1))
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("Place: %v, want ErrLost", err)
		}
		if a := healthy.audit(t, "mug"); a.Orders != 1 {
			t.Errorf("%d orders, want the healthy one's", a.Orders)
		}
	})
}

// A request that a rule forbids is refused before any store is asked.
func TestService_Place_refused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 1)
		unknown := buy("key", "mug", 1)
		unknown.Strategy = "hope"
		for name, c := range map[string]struct {
			request order.Request
			want    error
		}{
			"no key":           {buy("", "mug", 1), order.ErrKeyMissing},
			"zero units":       {buy("key", "mug", 0), order.ErrInvalid},
			"unknown SKU":      {buy("key", "cup", 1), stock.ErrUnknownSKU},
			"impossible SKU":   {buy("key", "no such name!", 1), stock.ErrUnknownSKU},
			"more than all":    {buy("key", "mug", 2), stock.ErrSoldOut},
			"unknown strategy": {unknown, order.ErrUnknownStrategy},
		} {
			if _, _, err := b.Place(t.Context(), c.request); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		if a := b.audit(t, "mug"); a.Orders != 0 || a.Level.Available != 1 {
			t.Errorf("account %+v after refusals", a)
		}
	})
}

// "Another buyer's order is ErrNotFound, like one that does not exist."
func TestService_Order(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 1)
		placed, _, err := b.Place(t.Context(), buy("key", "mug", 1))
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Order(t.Context(), "ann", placed.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(placed, got); diff != "" {
			t.Errorf("read back (-placed +got):\n%s", diff)
		}
		for _, c := range [][2]string{{"bob", placed.ID}, {"ann", "no-such-order"}} {
			if _, err := b.Order(t.Context(), c[0], c[1]); !errors.Is(err, order.ErrNotFound) {
				t.Errorf("Order(%q, %q): %v, want ErrNotFound", c[0], c[1], err)
			}
		}
	})
}

// New "fails if the lock of a strategy is missing in c, and c does not say that
// the strategy is".
func TestNew_lockMissing(t *testing.T) {
	t.Parallel()
	lockers := map[string]order.Locker{order.RedisLock: noLocker{}}
	if _, err := order.New(order.Config{Lockers: lockers}); err == nil {
		t.Error("a strategy without its lock was accepted")
	}
	if _, err := order.New(order.Config{Lockers: lockers, Missing: only("redis", "setex")}); err == nil {
		t.Error("a strategy without its plain lock was accepted")
	}
	if _, err := order.New(order.Config{Lockers: lockers, Missing: only("redis", "none")}); err != nil {
		t.Errorf("all locks that are needed: %v", err)
	}
}

// An order by a strategy that the shop lacks something for is refused, and told
// why.
func TestService_Place_missing(t *testing.T) {
	t.Parallel()
	s, err := order.New(order.Config{Missing: only("none")})
	if err != nil {
		t.Fatal(err)
	}
	r := buy("key", "mug", 1)
	r.Strategy = "zookeeper"
	_, _, err = s.Place(t.Context(), r)
	if !errors.Is(err, order.ErrMissingStrategy) || !strings.Contains(err.Error(), "zookeeper: not in this test") {
		t.Errorf("got %v, want ErrMissingStrategy with the name and why", err)
	}
	if why := s.Missing("none"); why != "" {
		t.Errorf("none: missing, because %q", why)
	}
}

type noLocker struct{ order.Locker }
