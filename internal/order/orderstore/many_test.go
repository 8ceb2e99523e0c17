package orderstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "PlacedAll returns the orders that these keys are about [...] A key that is not
// there is not in the answer."
func TestStore_PlacedAll(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 1000, "mug", "hat")
		want := map[order.BuyerKey]order.Claim{}
		var keys []order.BuyerKey
		for i := range 256 {
			buyer, key := fmt.Sprint("buyer-", i%7), fmt.Sprint("key-", i)
			keys = append(keys, order.BuyerKey{Buyer: buyer, Key: key}, order.BuyerKey{Buyer: "nobody", Key: key})
			if i%50 != 0 {
				continue
			}
			o := draft(buyer, key, "mug", "hat")
			s.mustPlace(t, o)
			want[order.BuyerKey{Buyer: buyer, Key: key}] = order.Claim{Order: o, Fingerprint: "fingerprint of " + key}
		}
		s.mustPlace(t, draft("buyer-0", "key-1", "mug")) // a key of this name, but of another buyer
		for _, asked := range [][]order.BuyerKey{keys, nil} {
			if asked == nil {
				clear(want)
			}
			got, err := s.orders.PlacedAll(t.Context(), asked)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d keys (-want +got):\n%s", len(asked), diff)
			}
		}
	})
}

// writeAll does in tx what the checkout of a lane does, with orders of two units.
func writeAll(tx order.Tx, orders ...order.Order) error {
	var claims []order.Claim
	var movements []stock.Movement
	for _, o := range orders {
		claims = append(claims, order.Claim{Order: o, Fingerprint: "fingerprint of " + o.Key})
		movements = append(movements, reservation(o, o.Lines[0]))
	}
	if err := tx.ClaimKeys(claims...); err != nil {
		return err
	}
	if err := tx.Take(stock.Conditional, stock.Take{SKU: "mug", Units: 2 * int64(len(orders))}); err != nil {
		return err
	}
	if err := tx.Add(orders...); err != nil {
		return err
	}
	return tx.Record(movements...)
}

// "ClaimKeys writes the rows of the idempotency keys ..., all or none": one that is taken leaves
// nothing behind of the others.
func TestTx_ClaimKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		const n = 256
		s := newShop(t, db, 2*n+2, "mug")
		s.mustPlace(t, draft("ann", "key-100", "mug"))
		var orders []order.Order
		for i := range n {
			orders = append(orders, draft("ann", fmt.Sprint("key-", i), "mug"))
		}
		place := func(orders ...order.Order) error {
			return s.orders.InTx(t.Context(), func(tx order.Tx) error { return writeAll(tx, orders...) })
		}
		if err := place(orders...); !errors.Is(err, order.ErrKeyTaken) {
			t.Errorf("with a key that is taken: got %v, want ErrKeyTaken", err)
		}
		s.wantRows(t, rows{Orders: 1, Lines: 1, Movements: 2, Keys: 1})
		orders[100].Key = "another"
		if err := place(orders...); err != nil {
			t.Fatal(err)
		}
		s.wantRows(t, rows{Orders: n + 1, Lines: n + 1, Movements: n + 2, Keys: n + 1})
		for _, want := range orders {
			got, fingerprint, err := s.orders.Placed(t.Context(), "ann", want.Key)
			if diff := cmp.Diff(want, got); err != nil || diff != "" || fingerprint != "fingerprint of "+want.Key {
				t.Errorf("%s: %v, fingerprint %q (-want +got):\n%s", want.Key, err, fingerprint, diff)
			}
		}
		if _, found := s.audit(t, ""); len(found) > 0 {
			t.Errorf("audit: got %v, want no difference", found)
		}
	})
}
