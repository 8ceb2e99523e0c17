package orderstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// "KeysOf calls found for the keys of the orders with a SKU, at most limit, and for
// all that Placed would find": also of carts and of orders that have ended. "The
// index leaves out the SKU's earlier history."
func TestStore_KeysOf(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 1000, "mug", "hat")
		var want []order.BuyerKey
		for i := range 5 {
			o := draft("ann", fmt.Sprint("key-", i), "mug")
			s.mustPlace(t, o)
			want = append(want, order.BuyerKey{Buyer: o.Buyer, Key: o.Key})
		}
		s.mustPlace(t, draft("bob", "cart", "hat", "mug"))
		s.mustPlace(t, draft("bob", "hat", "hat"))
		want = append(want, order.BuyerKey{Buyer: "bob", Key: "cart"})

		keys := func(sku string, limit int) (found []order.BuyerKey) {
			t.Helper()
			err := s.orders.KeysOf(t.Context(), sku, limit, func(key order.BuyerKey) { found = append(found, key) })
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		byKey := cmpopts.SortSlices(func(a, b order.BuyerKey) bool { return a.Key < b.Key })
		if diff := cmp.Diff(want, keys("mug", 100), byKey); diff != "" {
			t.Errorf("mug (-want +got):\n%s", diff)
		}
		if got := keys("mug", 4); len(got) != 4 {
			t.Errorf("got %v, want 4 of them", got)
		}
		if got := keys("nothing", 4); got != nil {
			t.Errorf("got %v, want none", got)
		}
		// Keys from before that time are gone, but for those of the last day.
		for until, count := range map[time.Duration]int{23 * time.Hour: 6, 25 * time.Hour: 0} {
			at := time.Now().UTC().Add(until).Format("2006-01-02 15:04:05.000000")
			if err := db.Exec("UPDATE idempotency_purge SET purged_until = ?", at).Error; err != nil {
				t.Fatal(err)
			}
			if got := keys("mug", 100); len(got) != count {
				t.Errorf("purged until %v from now: got %v, want %d", until, got, count)
			}
		}
	})
}
