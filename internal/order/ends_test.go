package order_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "An order ends as Expired if it is pending and due by the database's clock, as anything else if it is pending and not
// due." All of these end in one batch.
func TestSeller_End(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "mug", 100)
		const pending, paid, cancelled, expired = order.Pending, order.Paid, order.Cancelled, order.Expired
		cases := []struct {
			was     order.Status
			due     bool
			to, now order.Status
			moved   bool
		}{
			{pending, false, paid, paid, true}, {pending, false, cancelled, cancelled, true}, {pending, false, expired, pending, false},
			{pending, true, expired, expired, true}, {pending, true, paid, pending, false}, {pending, true, cancelled, pending, false},
			{paid, false, paid, paid, false}, {paid, false, cancelled, paid, false}, {paid, true, expired, paid, false},
			{cancelled, false, paid, cancelled, false}, {cancelled, true, expired, cancelled, false},
			{expired, true, paid, expired, false}, {expired, false, paid, expired, false},
			{expired, true, cancelled, expired, false}, {expired, true, expired, expired, false},
		}
		endings := make([]*order.Ending, len(cases))
		for i, c := range cases {
			o := b.place(t, fmt.Sprint(i), "mug", 1)
			if c.due {
				b.makeDue(t, o)
			}
			b.exec(t, "UPDATE orders SET status = ? WHERE id = ?", c.was, o.ID)
			endings[i] = &order.Ending{Order: o, As: c.to}
		}
		b.batches.End(t.Context(), endings...)
		for i, c := range cases {
			e := endings[i]
			if e.Now != c.now || e.Moved != c.moved || e.Err != nil {
				t.Errorf("%+v: got %s, %v, %v", c, e.Now, e.Moved, e.Err)
			}
			if read, err := b.Order(t.Context(), "ann", e.Order.ID); err != nil || read.Status != c.now {
				t.Errorf("%+v: read %s, %v", c, read.Status, err)
			}
		}
		b.wantLevel(t, "mug", 87, 12)
	})
}

// An order of a SKU whose row is locked waits by itself, and so does one whose own row is: the others end meanwhile, and these
// when the rows are free.
func TestService_Pay_lockedRows(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		b := setup(t, kind.New(t, "innodb_lock_wait_timeout=600").Migrated(t))
		var orders []order.Order
		for _, sku := range []string{"cap", "hat", "mug"} {
			b.supply(t, sku, 10)
			orders = append(orders, b.place(t, sku, sku, 1))
		}
		paid := make(chan string, len(orders))
		undo := errors.New("undo")
		err := b.db.InTx(t.Context(), func(tx order.Tx) error {
			if _, err := tx.LockLevels([]string{"cap"}); err != nil {
				return err
			}
			if _, err := tx.LockOrders(orders[1].ID); err != nil {
				return err
			}
			for _, o := range orders {
				go func() {
					_, err := b.Pay(t.Context(), payment(o))
					wantErr(t, "pay", err, nil)
					paid <- o.Lines[0].SKU
				}()
			}
			if first := <-paid; first != "mug" {
				t.Errorf("%s is paid first, want mug", first)
			}
			began := time.Now()
			wantErr(t, "another", func() error { _, err := b.Cancel(t.Context(), payment(b.place(t, "k", "mug", 1))); return err }(), nil)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("another order waits for %v", took)
			}
			return undo
		})
		wantErr(t, "transaction", err, undo)
		<-paid
		<-paid
		for _, o := range orders {
			b.wantEnd(t, o, order.Paid, o.Lines[0].SKU, stock.Level{Supplied: 10, Available: 9, Sold: 1})
		}
	})
}
