package order_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// While a transaction of a paused instance, or of an operator's console, keeps a row locked, the others of the same
// moment are served, what waits for the row keeps few connections, and is served when the row is free: if another
// transaction "locked the row of the buyer, or keeps the row of a SKU locked, the order waits behind: in a queue whose
// leader waits for these rows".
func TestLockedRow(t *testing.T) {
	t.Parallel()
	const crowd = 64
	buy := func(b *bundle, r order.Request) error { _, _, err := b.Place(t.Context(), r); return err }
	pay := func(b *bundle, r order.EndRequest) error { _, err := b.Pay(t.Context(), r); return err }
	lockBuyer := func(buyer string) func(order.Tx, order.Order) error {
		return func(tx order.Tx, _ order.Order) error { _, err := tx.LockBuyers(buyer); return err }
	}
	lockKey := func(tx order.Tx, first order.Order) error {
		first.Key = "twin"
		if err := lockBuyer(first.Buyer)(tx, first); err != nil {
			return err
		}
		_, err := tx.ClaimKeys(order.UsedKey{Order: first})
		return err
	}
	lockMug := func(tx order.Tx, _ order.Order) error { _, err := tx.LockLevels([]string{"mug"}); return err }
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		for name, c := range map[string]struct {
			lock  func(tx order.Tx, first order.Order) error
			waits func(b *bundle, i int, mugs []order.Order) error
		}{
			"buyer": {lockBuyer("ann"), func(b *bundle, i int, _ []order.Order) error {
				return buy(b, purchase("ann", nth(i), "mug", 1))
			}},
			"new buyer": {lockBuyer("eve"), func(b *bundle, i int, _ []order.Order) error {
				return buy(b, purchase("eve", nth(i), "mug", 1))
			}},
			"key of a stuck twin": {lockKey, func(b *bundle, _ int, mugs []order.Order) error {
				return buy(b, purchase(mugs[0].Buyer, "twin", "mug", 1))
			}},
			"key of a stuck order": {lockKey, func(b *bundle, _ int, mugs []order.Order) error {
				return pay(b, withKey(mugs[0], "twin"))
			}},
			"SKU, of orders": {lockMug, func(b *bundle, i int, _ []order.Order) error {
				r := purchase(nth(i), "key", "mug", 1)
				r.Lines = append(r.Lines, order.Line{SKU: []string{"mug", "hat"}[i%2], Units: 1})
				return buy(b, r)
			}},
			"SKU, of payments": {lockMug, func(b *bundle, i int, mugs []order.Order) error { return pay(b, payment(mugs[i])) }},
			"order": {func(tx order.Tx, first order.Order) error {
				_, err := tx.LockOrders(first.ID)
				return err
			}, func(b *bundle, _ int, mugs []order.Order) error { return pay(b, payment(mugs[0])) }},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				db := kind.New(t, "innodb_lock_wait_timeout=600").Migrated(t)
				shop := setup(t, db, byLanes)
				shop.supply(t, "mug", 1_000)
				shop.supply(t, "hat", 1_000)
				shop.place(t, "known", "mug", 1)
				mugs, hats := make([]order.Order, crowd+1), make([]order.Order, crowd+1)
				atOnce(crowd+1, func(i int) {
					for sku, orders := range map[string][]order.Order{"mug": mugs, "hat": hats} {
						o, _, err := shop.Place(t.Context(), purchase("old-"+nth(i), sku, sku, 1))
						wantErr(t, "old order", err, nil)
						orders[i] = o
					}
				})
				g := gather(t, db)
				g.all.Go(func() { // the first batch of ends stands still as well
					_, err := g.Cancel(t.Context(), order.EndRequest{OrderID: "none", Buyer: "first"})
					wantErr(t, "no order", err, order.ErrNotFound)
				})
				await(t, "begun", 2, func() int { return int(g.begun.Load()) })
				undo := errors.New("undo")
				err := db.InTx(t.Context(), func(tx order.Tx) error {
					if err := c.lock(tx, mugs[0]); err != nil {
						return err
					}
					var others sync.WaitGroup
					for i := range crowd {
						g.all.Go(func() { wantErr(t, "waits", c.waits(g.bundle, i, mugs), nil) })
						others.Go(func() { wantErr(t, "another order", buy(g.bundle, purchase("other-"+nth(i), "key", "hat", 1)), nil) })
						others.Go(func() { wantErr(t, "another payment", pay(g.bundle, payment(hats[i])), nil) })
					}
					await(t, "queued", 3*crowd, g.queued)
					close(g.gate)
					others.Wait()
					g.all.Go(func() { wantErr(t, "comes meanwhile", c.waits(g.bundle, crowd, mugs), nil) })
					wantErr(t, "comes after it", buy(g.bundle, purchase("last", "key", "hat", 1)), nil)
					wantErr(t, "is paid after it", pay(g.bundle, payment(hats[crowd])), nil)
					if now := db.DB().Stats(); now.InUse > now.MaxOpenConnections/4 {
						t.Errorf("%d of %d connections are in use", now.InUse, now.MaxOpenConnections)
					}
					return undo
				})
				wantErr(t, "transaction", err, undo)
				g.all.Wait()
				g.audit(t, "")
			})
		}
	})
}

// What waits behind is answered while the row is still locked: after "rowTimeout at most", or when its caller leaves. A
// strategy of one order tries "again [...], for 5 s, after ErrBuyerLocked".
func TestLockedRow_forLong(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		shop := setup(t, kind.New(t, "").Migrated(t), byLanes, maxOpen(10))
		shop.supply(t, "mug", 10)
		shop.supply(t, "hat", 10)
		mug, hat := shop.place(t, "mug", "mug", 1), shop.place(t, "hat", "hat", 1)
		undo := errors.New("undo")
		err := shop.db.InTx(t.Context(), func(tx order.Tx) error {
			if _, err := tx.LockOrders(hat.ID); err != nil {
				return err
			}
			if _, err := tx.LockBuyers("eve"); err != nil {
				return err
			}
			if _, err := tx.LockLevels([]string{"mug"}); err != nil {
				return err
			}
			var all sync.WaitGroup
			for _, strategy := range []string{"lanes", "conditional"} {
				all.Go(func() {
					_, _, err := shop.by(strategy).Place(t.Context(), purchase("eve", strategy, "hat", 1))
					wantErr(t, "buyer of "+strategy, err, order.ErrBusy)
				})
			}
			all.Go(func() {
				_, err := shop.Pay(t.Context(), payment(hat))
				wantErr(t, "order", err, order.ErrBusy)
			})
			all.Go(func() {
				_, err := shop.Pay(t.Context(), payment(mug))
				wantErr(t, "SKU of a payment", err, order.ErrBusy)
			})
			all.Go(func() {
				_, _, err := shop.Place(t.Context(), purchase("bob", "key", "mug", 1))
				wantErr(t, "SKU", err, order.ErrBusy)
			})
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, _, err := shop.Place(ctx, purchase("eve", "key", "mug", 1))
				wantErr(t, "leaves", err, context.DeadlineExceeded)
			})
			all.Wait()
			return undo
		})
		wantErr(t, "transaction", err, undo)
		shop.audit(t, "")
	})
}
