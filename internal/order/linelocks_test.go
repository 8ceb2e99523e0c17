package order_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "two of them never wait for each other": half of a crowd on two instances wants
// the same SKUs in the opposite order, and all are served.
func TestService_Place_oppositeOrder(t *testing.T) {
	t.Parallel()
	const buyers = 64
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)[:2]
		for _, s := range offered(shops[0]) {
			if !s.Promises {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				mug, hat := "mug-"+s.Name, "hat-"+s.Name
				shops[0].supply(t, mug, buyers)
				shops[0].supply(t, hat, buyers)
				atOnce(buyers, func(i int) {
					r := cart(fmt.Sprint(s.Name, i), order.RequestLine{SKU: mug, Units: 1}, order.RequestLine{SKU: hat, Units: 1})
					r.Strategy = s.Name
					if i/2%2 == 0 {
						slices.Reverse(r.Lines)
					}
					if _, _, err := shops[i%2].Place(t.Context(), r); err != nil {
						t.Errorf("Place: %v", err)
					}
				})
				shops[0].wantLevel(t, mug, 0, buyers)
				shops[0].wantLevel(t, hat, 0, buyers)
			})
		}
	})
}

// rowOrder notes in which order a service's transactions change stock.
type rowOrder struct {
	*orderstore.Store
	skus []string
}

func (o *rowOrder) InTx(ctx context.Context, fn func(order.Tx) error) error {
	return o.Store.InTx(ctx, func(tx order.Tx) error {
		o.skus = nil
		return fn(rowOrderTx{tx, o})
	})
}

type rowOrderTx struct {
	order.Tx
	order *rowOrder
}

func (t rowOrderTx) Take(way stock.Way, take stock.Take) error {
	t.order.skus = append(t.order.skus, take.SKU)
	return t.Tx.Take(way, take)
}

func (t rowOrderTx) Settle(kind stock.Kind, sku string, units int64) error {
	t.order.skus = append(t.order.skus, sku)
	return t.Tx.Settle(kind, sku, units)
}

// "in the order of the SKUs' names, as in all transactions of several lines"
func TestService_rowOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setupIn(t, startLab(t, db), db, lock.NewMemory(), 10*time.Second)
		noted := &rowOrder{Store: b.orders}
		s := b.with(t, func(c *order.Config) { c.Store = noted })
		for _, strategy := range offered(b) {
			// Of its own each: fences of different stores cannot be compared.
			want := []string{"a-" + strategy.Name, "b-" + strategy.Name, "c-" + strategy.Name}
			for _, sku := range want {
				b.supply(t, sku, 10)
			}
			r := cart(strategy.Name, order.RequestLine{SKU: want[1], Units: 1}, order.RequestLine{SKU: want[2], Units: 1}, order.RequestLine{SKU: want[0], Units: 1})
			r.Strategy = strategy.Name
			o, _, err := s.Place(t.Context(), r)
			if err != nil || !slices.Equal(noted.skus, want) {
				t.Errorf("%s takes %v, %v, want %v", strategy.Name, noted.skus, err, want)
			}
			noted.skus = nil
			if _, err := s.Pay(t.Context(), payment(o)); err != nil || !slices.Equal(noted.skus, want) {
				t.Errorf("%s sells %v, %v, want %v", strategy.Name, noted.skus, err, want)
			}
		}
	})
}

// A fence that the database refuses costs a retry, on whichever line, and the
// other's fence stays its lease's.
func TestService_Place_overtakesLine(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		ahead := time.Now().Add(time.Hour).UnixMicro()
		for i, raised := range [][]string{{"a"}, {"b"}, {"a", "b"}} {
			b := setup(t, db, lock.NewMemory(), 10*time.Second) // a store that has raised no fence yet
			skus := []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
			for _, sku := range skus {
				b.supply(t, sku, 5)
			}
			for _, letter := range raised {
				b.raiseFence(t, fmt.Sprint(letter, i), ahead)
			}
			r := cart(fmt.Sprint(i), order.RequestLine{SKU: skus[0], Units: 2}, order.RequestLine{SKU: skus[1], Units: 3})
			if _, _, err := b.Place(t.Context(), r); err != nil {
				t.Fatalf("%v raised: %v", raised, err)
			}
			for _, letter := range []string{"a", "b"} {
				sku, err := b.stock.SKU(t.Context(), fmt.Sprint(letter, i))
				if err != nil || sku.Fence == 0 || (sku.Fence > ahead) != slices.Contains(raised, letter) {
					t.Errorf("%v raised: fence of %s %d, %v", raised, letter, sku.Fence, err)
				}
			}
			b.wantLevel(t, skus[0], 3, 2)
			b.wantLevel(t, skus[1], 2, 3)
		}
	})
}

// An order that cannot have all leases keeps none of them, and changes no row.
func TestService_Place_leaseMissing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		backend := lock.NewMemory()
		b := setup(t, db, backend, 10*time.Second)
		impatient := lock.New(backend, lock.Options{TTL: 10 * time.Second, MaxWait: 50 * time.Millisecond})
		defer func() {
			if err := impatient.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		s := b.with(t, func(c *order.Config) { c.Lockers[order.RedisLock] = impatient })
		b.supply(t, "hat", 5)
		b.supply(t, "mug", 5)
		err := b.shared.Do(t.Context(), "sku:mug", func(ctx context.Context, _ *lock.Lease) error {
			_, _, err := s.Place(ctx, cart("key", order.RequestLine{SKU: "mug", Units: 1}, order.RequestLine{SKU: "hat", Units: 1}))
			if !errors.Is(err, lock.ErrTimeout) {
				t.Errorf("Place: %v, want ErrTimeout", err)
			}
			hat, err := b.shared.TryAcquire(ctx, "sku:hat")
			if err != nil {
				return fmt.Errorf("the lease of the other line: %w", err)
			}
			return hat.Release()
		})
		if err != nil {
			t.Error(err)
		}
		b.wantLevel(t, "hat", 5, 0)
		b.wantLevel(t, "mug", 5, 0)
	})
}
