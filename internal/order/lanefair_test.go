package order_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/store/storetest"
)

// logStore notes which orders a service's transactions place.
type logStore struct {
	*orderstore.Store
	placed []string // by transaction: how many orders of which SKUs
}

func (s *logStore) InTx(ctx context.Context, fn func(order.Tx) error) error {
	log := &logTx{}
	err := s.Store.InTx(ctx, func(tx order.Tx) error {
		*log = logTx{Tx: tx}
		return fn(log)
	})
	if err == nil {
		s.placed = append(s.placed, fmt.Sprint(log.orders, " ", strings.Join(log.skus, "+")))
	}
	return err
}

type logTx struct {
	order.Tx
	orders int
	skus   []string // of the last order
}

func (t *logTx) Add(orders ...order.Order) error {
	t.orders += len(orders)
	for _, o := range orders {
		t.skus = nil
		for _, line := range o.Lines {
			t.skus = append(t.skus, line.SKU)
		}
	}
	return t.Tx.Add(orders...)
}

// "Between two batches the lease is given back, so that carts and other instances,
// who wait for the same one, get their turn": a cart that came while the first
// batch stood in line is served before the second.
func TestLanes_fairToCarts(t *testing.T) {
	t.Parallel()
	const most, more = 256, 44
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 1000)
		b.supply(t, "hat", 1000)
		log := &logStore{Store: b.orders}
		var sizes []int
		l := stand(t, b, func(c *order.Config) {
			c.Store, c.OnBatch = log, func(orders int) { sizes = append(sizes, orders) }
		})
		for i := range most + more {
			l.join(t.Context(), t, buyAs(fmt.Sprint("buyer-", i), "key", 1))
		}
		waiting := b.shared.Queued()
		l.all.Go(func() {
			r := cart("cart", order.RequestLine{SKU: "hat", Units: 1}, order.RequestLine{SKU: "mug", Units: 1})
			r.Strategy = "lanes"
			if _, _, err := l.shop.Place(t.Context(), r); err != nil {
				t.Errorf("cart: %v", err)
			}
		})
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for b.shared.Queued() == waiting && t.Context().Err() == nil {
			<-tick.C
		}
		l.serve(t)
		if diff := cmp.Diff([]string{"256 mug", "1 hat+mug", "44 mug"}, log.placed); diff != "" {
			t.Errorf("transactions (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{most, more}, sizes); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		b.wantLevel(t, "mug", 699, 301)
	})
}
