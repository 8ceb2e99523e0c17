package order_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// patient places an order as buyers do: again, while the database is busy.
func patient(ctx context.Context, b *bundle, r order.Request) (order.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		o, _, err := b.Place(ctx, r)
		if !errors.Is(err, order.ErrBusy) || ctx.Err() != nil {
			return o, err
		}
	}
}

// "No buyer gets over a limit, by any strategy, however many instances there are
// and however many orders come at once": 64 of one buyer, of eight SKUs, so that no
// lease keeps them in line.
func TestService_maxOpenAtOnce(t *testing.T) {
	t.Parallel()
	const orders, skus, most = 64, 8, 5
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		for _, b := range shops {
			b.withMaxOpen(t, most)
		}
		for _, how := range offered(shops[0]) {
			for i := range skus {
				shops[0].supply(t, fmt.Sprintf("%s-%d", how.Name, i), orders)
			}
			var placed atomic.Int64
			atOnce(orders, func(i int) {
				r := buy(fmt.Sprint(i), fmt.Sprintf("%s-%d", how.Name, i%skus), 1)
				r.Buyer, r.Strategy = how.Name, how.Name
				_, err := patient(t.Context(), shops[i%len(shops)], r)
				if err == nil {
					placed.Add(1)
				} else if !errors.Is(err, order.ErrTooManyOpen) {
					t.Errorf("%s: got %v, want ErrTooManyOpen", how.Name, err)
				}
			})
			if got := placed.Load(); got != most {
				t.Errorf("%s: got %d orders, want %d", how.Name, got, most)
			}
			if !how.Promises {
				continue
			}
			for i := range skus {
				shops[0].audit(t, fmt.Sprintf("%s-%d", how.Name, i))
			}
		}
	})
}

// The same for the units of a SKU, in orders of one to three.
func TestService_purchaseLimitAtOnce(t *testing.T) {
	t.Parallel()
	const orders, limit = 64, 10
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		shops[0].withMaxOpen(t, orders) // one of them counts both
		for _, how := range offered(shops[0]) {
			shops[0].supply(t, how.Name, 2*orders)
			shops[0].limitPerBuyer(t, how.Name, limit)
			var bought atomic.Int64
			atOnce(orders, func(i int) {
				r := buy(fmt.Sprint(i), how.Name, int64(1+i%3))
				r.Buyer, r.Strategy = how.Name, how.Name
				_, err := patient(t.Context(), shops[i%len(shops)], r)
				if err == nil {
					bought.Add(r.Lines[0].Units)
				} else if !errors.Is(err, order.ErrPurchaseLimit) {
					t.Errorf("%s: got %v, want ErrPurchaseLimit", how.Name, err)
				}
			})
			if got := bought.Load(); got != limit {
				t.Errorf("%s: got %d units, want %d", how.Name, got, limit)
			}
			if how.Promises {
				shops[0].audit(t, how.Name)
			}
		}
	})
}

// Orders that come and go while others are counted: none waits for another for
// ever, and never is there one too many.
func TestService_maxOpenComingAndGoing(t *testing.T) {
	t.Parallel()
	const buyers, rounds, most = 8, 12, 3
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		for _, b := range shops {
			b.withMaxOpen(t, most)
		}
		shops[0].supply(t, "cup", 1_000)
		shops[0].supply(t, "mug", 1_000)
		shops[0].limitPerBuyer(t, "mug", 1_000)
		atOnce(buyers, func(i int) {
			b := shops[i%len(shops)]
			for round := range rounds {
				r := buy(fmt.Sprintf("%d-%d", i, round), "cup", 1)
				r.Lines = append(r.Lines, order.RequestLine{SKU: "mug", Units: 1})
				r.Strategy = order.Strategies()[round%2].Name
				o, err := patient(t.Context(), b, r)
				if errors.Is(err, order.ErrTooManyOpen) {
					continue
				}
				if err != nil {
					t.Errorf("place: %v", err)
					return
				}
				var open int64
				if err := db.Table("orders").Where("status = ?", order.Pending).Count(&open).Error; err != nil || open > most {
					t.Errorf("%d orders are pending, %v, want at most %d", open, err, most)
				}
				end := b.Service.Pay
				if round%3 == 0 {
					end = b.Service.Cancel
				}
				if _, err := end(t.Context(), payment(o)); err != nil && !errors.Is(err, order.ErrBusy) {
					t.Errorf("end: %v", err)
				}
			}
		})
		shops[0].audit(t, "cup")
		shops[0].audit(t, "mug")
	})
}

// "It comes after the units, because of databases that refuse to update a row
// that has changed since the transaction first read anything": MariaDB from 11.6
// on. There, buyers of one SKU would come again and again, and be told to be busy.
func TestService_limitsOnSnapshots(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		if kind.Name != "MariaDB" {
			t.Skip("it updates the newest row, whatever was read")
		}
		const buyers = 64
		b := setup(t, kind.New(t, "innodb_snapshot_isolation=ON").Migrated(t), lock.NewMemory(), 10*time.Second).withMaxOpen(t, 1)
		b.supply(t, "mug", buyers)
		b.limitPerBuyer(t, "mug", 1)
		atOnce(buyers, func(i int) {
			r := buy("key", "mug", 1)
			r.Buyer, r.Strategy = fmt.Sprint(i), "conditional"
			if _, _, err := b.Place(t.Context(), r); err != nil {
				t.Errorf("buyer %d: %v", i, err)
			}
		})
		if got := b.audit(t, "mug").Level.Reserved; got != buyers {
			t.Errorf("got %d units reserved, want %d", got, buyers)
		}
	})
}
