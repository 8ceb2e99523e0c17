package order_test

import (
	"fmt"
	"testing"

	"example.com/shop/internal/order"
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
