package order_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// watched counts what a seller asks its Locker for, how often it would wait for long, and how often it sells without.
type watched struct {
	strategy.Locker
	asked, patient, without atomic.Int64
}

func (w *watched) AcquireWith(ctx context.Context, key string, others ...string) (strategy.Leases, error) {
	w.asked.Add(1)
	if until, _ := ctx.Deadline(); time.Until(until) > 100*time.Millisecond {
		w.patient.Add(1)
	}
	return w.Locker.AcquireWith(ctx, key, others...)
}

func (w *watched) config(c *config) {
	c.strategy = "lanes"
	c.batch.OnLeases = func(err error) {
		if err != nil {
			w.without.Add(1)
		}
	}
	c.wrap = func(next strategy.Locker) strategy.Locker { w.Locker = next; return w }
}

// "If a lease is not granted in time, because its holder has crashed or the lock's store does not answer, the batch
// sells without it"; "after a failed wait for the lease of a SKU, batches wait for it only for retryWait, until one
// gets it".
func TestLanes_withoutLeases(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		var w watched
		l := setup(t, db, w.config)
		l.supply(t, "mug", 10)
		l.wantFence(t, "leases are free", l.place(t, "before", "mug", 1), true)
		held, err := l.shared.Acquire(t.Context(), "sku:mug")
		if err != nil {
			t.Fatal(err)
		}
		l.wantFence(t, "another holds them", l.place(t, "first", "mug", 1), false)
		l.wantFence(t, "still", l.place(t, "second", "mug", 1), false)
		if n := w.without.Load(); n != 2 {
			t.Errorf("OnLeases was called with %d errors, want 2", n)
		}
		if err := held.Release(); err != nil {
			t.Error(err)
		}
		l.wantFence(t, "free again", l.place(t, "after", "mug", 1), true)
		l.wantLevel(t, "mug", 6, 4)
		l.audit(t, "mug")
	})
}

// silent is a lock's store that does not answer before the test says so.
type silent struct {
	lock.Backend
	answer chan struct{}
}

func (s silent) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	select {
	case <-s.answer:
		return s.Backend.Acquire(ctx, c)
	case <-ctx.Done():
		return lock.Grant{}, ctx.Err()
	}
}

// The same of a store that does not answer before all orders are placed; "after two failed waits in a row, so do the
// waits for all leases".
func TestLanes_silentStore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		store, w := silent{lock.NewMemory(), make(chan struct{})}, watched{}
		l := setup(t, db, w.config, func(c *config) { c.backend, c.batch.LeaseWait = store, time.Second })
		for _, sku := range []string{"mug", "hat", "cap", "pen"} {
			l.supply(t, sku, 10)
			l.wantFence(t, sku, l.place(t, sku, sku, 1), false)
		}
		if n := w.patient.Load(); n != 2 {
			t.Errorf("%d long waits, want 2", n)
		}
		close(store.answer)
		lease, err := l.shared.Acquire(t.Context(), "sku:mug")
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
		l.audit(t, "mug")
	})
}

// heldUp is a transaction that is held up under its leases, before it locks the stock.
type heldUp struct {
	order.Tx
	meanwhile func()
}

func (h heldUp) TryLevels(skus []string, within time.Duration) (order.Levels, error) {
	h.meanwhile()
	return h.Tx.TryLevels(skus, within)
}

// "So a holder whose lease has ended is also harmless": the holder is paused after it got the lease, another instance
// sells under the next lease, and then the holder sells the rest.
func TestLanes_lateHolder(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) { // SQLite has one writer
		late := setup(t, kind.New(t, "").Migrated(t), byLanes)
		late.supply(t, "mug", 2)
		other := late.another(t)
		late.spy.aroundTx = func(tx order.Tx) order.Tx {
			return heldUp{tx, func() {
				if _, err := late.shared.ForceRelease(t.Context(), "sku:mug"); err != nil {
					t.Error(err)
				}
				o := other.mustPlace(t, purchase("bob", "key", "mug", 1))
				other.wantFence(t, "the next holder", o, true)
			}}
		}
		late.wantFence(t, "the late holder", late.place(t, "late", "mug", 1), false)
		late.wantLevel(t, "mug", 0, 2)
		late.audit(t, "mug")
	})
}
