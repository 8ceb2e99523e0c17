package order_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "Buyers of them are refused without asking anybody", and "the keys of all orders
// with the SKU are part of what is known, and these asks go the long way".
func TestSoldOut(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 2)
		b.supply(t, "hat", 5)
		r := remembering(t, b)
		first, _ := r.wants(t, "ann", nil)
		elsewhere := b.place(t, "bob", "mug", 1) // by ann, too, with the key bob
		if r.SoldOut(buyAs("eve", "key", 1)) {
			t.Error("it is known before anybody has looked")
		}
		r.learns(t)

		before, refusedBefore := r.asked(), r.refused.Load()
		for i := range 100 {
			r.wants(t, fmt.Sprint("late-", i), stock.ErrSoldOut)
		}
		both := cart("cart", order.RequestLine{SKU: "hat", Units: 1}, order.RequestLine{SKU: "mug", Units: 1})
		if _, _, err := r.Place(t.Context(), both); !errors.Is(err, stock.ErrSoldOut) || err.Error() != `sku "mug": not enough units are available` {
			t.Errorf("cart: got %v, want the words of every other refusal", err)
		}
		if got := r.asked() - before; got != 0 || r.refused.Load()-refusedBefore != 101 {
			t.Errorf("%d questions for %d refusals, want 0 for 101", got, r.refused.Load()-refusedBefore)
		}
		for _, other := range []string{"redis", "conditional"} {
			wish := buyAs("eve", "eve", 1)
			wish.Strategy = other
			if _, _, err := r.Place(t.Context(), wish); !errors.Is(err, stock.ErrSoldOut) || r.SoldOut(wish) {
				t.Errorf("%s: got %v, known %v; want it to look by itself", other, err, r.SoldOut(wish))
			}
		}

		// "One that has bought [...] something without this SKU is told that the SKU is sold out."
		wish := buyAs("ann", "hat", 1)
		if _, _, err := b.Place(t.Context(), buy("hat", "hat", 1)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Place(t.Context(), wish); !errors.Is(err, stock.ErrSoldOut) {
			t.Errorf("a key of a hat: got %v, want ErrSoldOut", err)
		}
		r.Heard("mug") // "that it is reused only when that is no longer known"
		if _, _, err := r.Place(t.Context(), wish); !errors.Is(err, order.ErrKeyReused) {
			t.Errorf("a key of a hat, not known: got %v, want ErrKeyReused", err)
		}
		r.learns(t)
		for _, bought := range []order.Order{first, elsewhere} {
			wish := buyAs("ann", bought.Key, 1)
			if again, replayed, err := r.Place(t.Context(), wish); err != nil || !replayed || again.ID != bought.ID {
				t.Errorf("%s again: got %s, replayed %v, %v; want a replay", bought.Key, again.ID, replayed, err)
			}
			wish.Lines[0].Units = 2
			if _, _, err := r.Place(t.Context(), wish); !errors.Is(err, order.ErrKeyReused) {
				t.Errorf("%s for something else: got %v, want ErrKeyReused", bought.Key, err)
			}
		}
		b.wantLevel(t, "mug", 0, 2)
	})
}

// "Nothing is remembered before the first time, and while it is not" heard, nor with
// SoldOutFor 0; nor where there are more keys than fit.
func TestSoldOut_notRemembered(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.Kinds()[0].New(t, "").Migrated(t), lock.NewMemory(), 10*time.Second)
	b.supply(t, "mug", 0)
	for name, change := range map[string]func(*rememberer){
		"deaf":          func(r *rememberer) { r.Hears(false) },
		"too many keys": func(r *rememberer) { r.store.more = order.SoldOutKeys + 1 },
	} {
		r := remembering(t, b)
		change(r)
		for range 3 {
			r.wants(t, "ann", stock.ErrSoldOut)
			r.wantKnown(t, false)
		}
		r.Close()
		if got := r.store.keys.Load(); got > 1 {
			t.Errorf("%s: the keys were read %d times, want once at most", name, got)
		}
		if r.stock.reads.Load() != 3 || r.refused.Load() != 0 {
			t.Errorf("%s: %d looks and %d refusals, want 3 and none", name, r.stock.reads.Load(), r.refused.Load())
		}
	}
	off := b.with(t, func(*order.Config) {})
	defer off.Close()
	off.Hears(true)
	for range 3 {
		if _, _, err := off.Place(t.Context(), buyAs("ann", "key", 1)); !errors.Is(err, stock.ErrSoldOut) || off.SoldOut(buyAs("eve", "key", 1)) {
			t.Errorf("off: got %v", err)
		}
	}
}

// "A herd that comes for a SKU with nothing left makes one batch: what its leader
// learns from that is told to all who stand in line behind it."
func TestSoldOut_herd(t *testing.T) {
	t.Parallel()
	const herd = 10_000 - 1 // what a lane has room for, beside who learned it first
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 1)
		r := remembering(t, b)
		first, _ := r.wants(t, "ann", nil)
		r.learns(t)
		r.wait(time.Second)
		lease, err := b.shared.Acquire(t.Context(), "sku:mug")
		if err != nil {
			t.Fatal(err)
		}
		before, reads, keys := r.asked(), r.stock.reads.Load(), r.store.keys.Load()
		var all sync.WaitGroup
		var refused, replayed atomic.Int64
		for i := range herd {
			all.Go(func() {
				wish := buyAs(fmt.Sprint("herd-", i), "key", 1)
				if i == herd/2 {
					wish = buyAs("ann", "ann", 1)
				}
				o, again, err := r.Place(t.Context(), wish)
				switch {
				case errors.Is(err, stock.ErrSoldOut):
					refused.Add(1)
				case err == nil && again && o.ID == first.ID:
					replayed.Add(1)
				default:
					t.Errorf("%s: got %+v, %v", wish.Buyer, o, err)
				}
			})
		}
		awaitQueued(t, r.Service, herd)
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
		all.Wait()
		if refused.Load() != herd-1 || replayed.Load() != 1 {
			t.Errorf("%d refused, %d replayed, want %d and 1", refused.Load(), replayed.Load(), herd-1)
		}
		// A batch is a lease, a look and its keys; ann may need one of her own.
		if got := r.stock.reads.Load() - reads; got > 2 || r.asked()-before > 6 || r.store.keys.Load() != keys {
			t.Errorf("%d looks, %d questions in all, keys read %d times more; want 2, 6 and none at most", got, r.asked()-before, r.store.keys.Load()-keys)
		}
	})
}
