package order_test

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "A count that was lost lets in no more buyers than there are units": the first has taken the last unit, and
// everything in Redis is deleted. The second counts again and takes the unit. The first is about to write its order,
// and starts over, or the second would be let in to a row that has no unit left.
func TestPreDeductReconciled_lost(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		shops := threeShops(t, db)
		first, second := shops[0].by("pre-deduct-reconciled"), shops[1].by("pre-deduct-reconciled")
		first.supply(t, "mug", 1)
		refused := 0
		for _, b := range []*bundle{first, second} {
			b.spy.aroundTx = func(tx order.Tx) order.Tx { return refusals{tx, &refused} }
		}
		taken, goOn, placed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		second.spy.beforeLevels = func() {
			close(taken)
			<-goOn
		}
		first.spy.beforeLevels = func() { // it has taken the unit
			first.spy.beforeLevels = nil
			if err := first.config.counts.FlushAll(t.Context()).Err(); err != nil {
				t.Error(err)
			}
			go func() {
				_, _, err := second.Place(t.Context(), purchase("bob", "second", "mug", 1))
				placed <- err
			}()
			<-taken
			first.spy.afterTx = func(error) { // its order's transaction was rolled back
				first.spy.afterTx = nil
				close(goOn)
			}
		}
		_, _, err := first.Place(t.Context(), purchase("ann", "first", "mug", 1))
		if other := <-placed; !errors.Is(err, order.ErrSoldOut) || other != nil || refused > 0 {
			t.Errorf("the first got %v, the second %v, and the database refused %d times; want sold out, an order, and none", err, other, refused)
		}
		first.wantLevel(t, "mug", 0, 1)
	})
}

// refusals counts what the database refuses to take.
type refusals struct {
	order.Tx
	count *int
}

func (r refusals) Take(mode stock.TakeMode, take stock.Take) error {
	err := r.Tx.Take(mode, take)
	if errors.Is(err, order.ErrSoldOut) {
		*r.count++
	}
	return err
}

// "A buyer is refused only once nobody can give units back": a buyer that has taken the last unit and never writes
// its order is overdue, and the next buyer gets the unit.
func TestPreDeductReconciled_overdue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := threeShops(t, db)[0].by("pre-deduct-reconciled")
		b.supply(t, "mug", 1)
		hangs := strategy.PreDeductReconciled{
			Shop: strategy.Shop{Store: &spyStore{Store: db, beforeLevels: func() { panic("its process dies") }}}, Redis: b.config.counts,
			Deadline: time.Millisecond, Patience: time.Minute,
		}
		func() {
			defer func() { _ = recover() }()
			_, _, _ = order.New(order.Config{Store: db, Strategy: hangs}).Place(t.Context(), purchase("ann", "dead", "mug", 1))
		}()
		b.place(t, "next", "mug", 1)
		b.wantLevel(t, "mug", 0, 1)
	})
}
