package order_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "The same request again gets the same order; another request with the same key
// is refused."
func TestService_Place_replay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		first, replayed, err := b.Place(t.Context(), buy("key", "mug", 2))
		if err != nil || replayed {
			t.Fatalf("Place: replayed %v, %v", replayed, err)
		}
		again, replayed, err := b.Place(t.Context(), buy("key", "mug", 2))
		if err != nil || !replayed {
			t.Fatalf("Place again: replayed %v, %v", replayed, err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("another order (-first +again):\n%s", diff)
		}
		if _, _, err := b.Place(t.Context(), buy("key", "mug", 3)); !errors.Is(err, order.ErrKeyReused) {
			t.Errorf("another request with the key: %v, want ErrKeyReused", err)
		}
		other := buy("key", "mug", 3)
		other.Buyer = "bob"
		if _, replayed, err := b.Place(t.Context(), other); err != nil || replayed {
			t.Errorf("another buyer with the key: replayed %v, %v", replayed, err)
		}
		want := stock.Level{Supplied: 10, Available: 5, Reserved: 5}
		if got := b.audit(t, "mug").Level; got != want {
			t.Errorf("level %+v, want %+v", got, want)
		}
	})
}

// "A buyer's idempotency key makes at most one order": 50 requests at once, by
// every strategy, also the wrong ones, on three instances.
func TestService_Place_twins(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		for _, s := range offered(shops[0]) {
			t.Run(s.Name, func(t *testing.T) {
				name := "mug-" + s.Name
				shops[0].supply(t, name, 1)
				r := buy("key-"+s.Name, name, 1)
				r.Strategy = s.Name
				ids := make([]string, 50)
				atOnce(len(ids), func(i int) {
					o, _, err := shops[i%3].Place(t.Context(), r)
					if err != nil {
						t.Errorf("Place: %v", err)
					}
					ids[i] = o.ID
				})
				for _, id := range ids {
					if id != ids[0] {
						t.Fatalf("two orders for one key: %s and %s", ids[0], id)
					}
				}
				if n := shops[0].audit(t, name).Orders; n != 1 {
					t.Errorf("%d orders, want 1", n)
				}
			})
		}
	})
}

// While a request waits, its twin may take the last units: then it is not sold
// out but replayed.
func TestService_Place_twinTookTheLast(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 1)
		r := buy("key", "mug", 1)
		r.Strategy = "conditional" // no lock, so that the twin can come in between
		var twin order.Order
		b.stock.afterRead = func() {
			var err error
			if twin, _, err = b.Place(t.Context(), r); err != nil {
				t.Errorf("twin: %v", err)
			}
		}
		o, replayed, err := b.Place(t.Context(), r)
		if err != nil || !replayed || o.ID != twin.ID {
			t.Errorf("got order %q, replayed %v, %v; want the twin's %q", o.ID, replayed, err, twin.ID)
		}
		b.audit(t, "mug")
	})
}
