package order_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// countedLocker counts leases.
type countedLocker struct {
	strategy.Locker
	leases *atomic.Int64
}

func (l countedLocker) AcquireAll(ctx context.Context, keys ...string) (strategy.Leases, error) {
	l.leases.Add(1)
	return l.Locker.AcquireAll(ctx, keys...)
}

// "Where the last batch found nothing left, the next one reads stock and keys before it asks for the lease, and refuses
// all of its buyers if that is still so: refusing a crowd costs two reads for each 256 buyers." A key that
// has bought gets its order all the same, and units that another instance gave back are sold to the next buyer.
func TestLanes_soldOut(t *testing.T) {
	t.Parallel()
	const crowd = 5_000
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		var reads, leases atomic.Int64
		s := setup(t, db, byLanes, func(c *config) {
			c.wrap = func(l strategy.Locker) strategy.Locker { return countedLocker{l, &leases} }
		})
		s.spy.beforeLevels = func() { reads.Add(1) }
		s.reset(t)
		s.supply(t, "mug", 1)
		elsewhere := s.another(t)
		first := s.mustPlace(t, mugs("ann", "ann", 1))
		_, _, err := s.Place(t.Context(), mugs("eve", "eve", 1))
		wantErr(t, "the first who is too late", err, order.ErrSoldOut)

		held, err := s.shared.Acquire(t.Context(), "sku:mug") // no lane gets the lease meanwhile
		if err != nil {
			t.Fatal(err)
		}
		reads.Store(0)
		leases.Store(0)
		var all sync.WaitGroup
		var refused, replayed atomic.Int64
		for i := range crowd {
			all.Go(func() {
				ask := mugs(nth(i), "key", 1)
				if i == crowd/2 {
					ask = mugs("ann", "ann", 1)
				}
				o, again, err := s.Place(t.Context(), ask)
				switch {
				case errors.Is(err, order.ErrSoldOut):
					refused.Add(1)
				case err == nil && again && o.ID == first.ID:
					replayed.Add(1)
				default:
					t.Errorf("%s: got %+v, %v", ask.Buyer, o, err)
				}
			})
		}
		all.Wait()
		if refused.Load() != crowd-1 || replayed.Load() != 1 || leases.Load() != 0 || reads.Load() > crowd/10 {
			t.Errorf("%d refused, %d replayed, %d leases, %d reads; want %d, 1, none and few",
				refused.Load(), replayed.Load(), leases.Load(), reads.Load(), crowd-1)
		}
		if err := held.Release(); err != nil {
			t.Error(err)
		}

		if _, err := elsewhere.Cancel(t.Context(), order.EndRequest{Buyer: "ann", OrderID: first.ID}); err != nil {
			t.Fatal(err)
		}
		s.mustPlace(t, mugs("eve", "eve", 1))
		if _, again, err := s.Place(t.Context(), mugs("ann", "ann", 1)); err != nil || !again {
			t.Errorf("ann again: replayed %v, %v, want the replay", again, err)
		}
		s.wantLevel(t, "mug", 0, 1)
	})
}
