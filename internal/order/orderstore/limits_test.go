package orderstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

func (s shop) lockBuyer(ctx context.Context, buyer string) error {
	return s.orders.InTx(ctx, func(tx order.Tx) error { return tx.LockBuyers(buyer) })
}

// "LockBuyers makes these buyers' other orders wait", and nobody else's: neither
// while the buyer's row is made nor when it is there, and in no gap beside it.
func TestTx_LockBuyers(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		if !kind.Server {
			t.Skip("SQLite: one transaction writes at a time")
		}
		s := newShop(t, kind.New(t, "innodb_lock_wait_timeout=1").Migrated(t), 10)
		for _, round := range []string{"new rows", "rows that are there"} {
			err := s.orders.InTx(t.Context(), func(tx order.Tx) error {
				if err := tx.LockBuyers("bob"); err != nil {
					return err
				}
				for _, other := range []string{"boa", "bo", "bobby", "Bob", "bob.", "ann", "zoe"} {
					if err := s.lockBuyer(t.Context(), other); err != nil {
						t.Errorf("%s: %s waits for bob: %v", round, other, err)
					}
				}
				if err := s.lockBuyer(t.Context(), "bob"); !errors.Is(err, order.ErrBusy) {
					t.Errorf("%s: bob again: got %v, want ErrBusy", round, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// "It is exact behind LockBuyers": whoever has waited there counts the order
// that was waited for.
func TestTx_Open(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 10, "mug")
		first, later := draft("ann", "k1", "mug"), draft("ann", "k2", "mug")
		later.ExpiresAt = farOff.AddDate(1, 0, 0)
		s.mustPlace(t, later, draft("bob", "k1", "mug"))
		begun, counted := make(chan struct{}), make(chan error, 1)
		begin := sync.OnceFunc(func() { close(begun) })
		go func() {
			<-begun
			counted <- s.orders.InTx(t.Context(), func(tx order.Tx) error {
				if err := tx.LockBuyers("ann"); err != nil {
					return err
				}
				want := map[string]order.OpenOrders{"ann": {Count: 2, First: farOff}, "bob": {Count: 1, First: farOff}}
				open, err := tx.Open("ann", "bob", "zoe")
				if diff := cmp.Diff(want, open); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return err
			})
		}()
		err := s.orders.InTx(t.Context(), func(tx order.Tx) error {
			if err := tx.LockBuyers("ann"); err != nil {
				return err
			}
			begin()
			return write(tx, first)
		})
		if err := errors.Join(err, <-counted); err != nil {
			t.Fatal(err)
		}
	})
}

// "Bought tells how many units of these SKUs are in orders of these buyers that are
// pending or paid."
func TestTx_Bought(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 20, "cup", "hat", "mug")
		paid, cancelled := draft("ann", "k1", "mug"), draft("ann", "k2", "mug", "cup")
		s.mustPlace(t, paid, cancelled, draft("ann", "k3", "hat", "mug"), draft("bob", "k1", "mug"))
		var bought map[order.BuyerSKU]int64
		err := s.orders.InTx(t.Context(), func(tx order.Tx) (err error) {
			for id, end := range map[string]order.Status{paid.ID: order.Paid, cancelled.ID: order.Cancelled} {
				if _, moved, err := tx.Move(id, end); err != nil || !moved {
					t.Errorf("move to %s: got %v, %v", end, moved, err)
				}
			}
			bought, err = tx.Bought([]string{"ann", "bob", "zoe"}, []string{"cup", "mug"})
			return err
		})
		want := map[order.BuyerSKU]int64{{Buyer: "ann", SKU: "mug"}: 4, {Buyer: "bob", SKU: "mug"}: 2}
		if diff := cmp.Diff(want, bought); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
