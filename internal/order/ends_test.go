package order_test

import (
	"fmt"
	"slices"
	"testing"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "A pending order ends as Expired if it is due by the database's clock, and as Paid or Cancelled if it is not due." "The
// caller sets ID and Buyer"; "ErrNotFound if the buyer has no such order". All of these end in one batch.
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
			if i%2 == 0 {
				endings[i].Order = order.Order{ID: o.ID, Buyer: o.Buyer}
			}
		}
		others := b.place(t, "others", "mug", 1)
		none := []*order.Ending{
			{Order: order.Order{ID: order.NewID(), Buyer: "ann"}, As: paid}, {Order: order.Order{ID: others.ID, Buyer: "bob"}, As: cancelled},
		}
		b.batches.End(t.Context(), append(none, endings...)...)
		for _, e := range none {
			wantErr(t, "not found", e.Err, order.ErrNotFound)
		}
		for i, c := range cases {
			e := endings[i]
			if e.Now != c.now || e.Moved != c.moved || e.Err != nil {
				t.Errorf("%+v: got %s, %v, %v", c, e.Now, e.Moved, e.Err)
			}
			if read, err := b.Order(t.Context(), "ann", e.Order.ID); err != nil || read.Status != c.now {
				t.Errorf("%+v: read %s, %v", c, read.Status, err)
			} else if e.Order.Total != read.Total || !slices.Equal(e.Order.Lines, read.Lines) {
				t.Errorf("%+v: got %+v, want %+v", c, e.Order, read)
			}
		}
		b.wantLevel(t, "mug", 86, 13)
	})
}

// "An order has several lines, which are placed, and end, all together": its end moves the units of all lines, once.
func TestSeller_End_lines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		lines := make([]order.Line, order.MaxLines)
		for i := range lines {
			lines[i] = order.Line{SKU: fmt.Sprint("sku-", i), Units: 1}
			b.supply(t, lines[i].SKU, 100)
		}
		endings := make([]*order.Ending, 100)
		for i := range endings {
			o := b.mustPlace(t, order.Request{Buyer: nth(i), Key: "key", Lines: lines})
			endings[i] = &order.Ending{Order: o, As: []order.Status{order.Paid, order.Cancelled}[i%2]}
		}
		b.batches.End(t.Context(), endings...)
		for _, e := range endings {
			if e.Err != nil || !e.Moved {
				t.Fatalf("got %v, %v", e.Moved, e.Err)
			}
		}
		for _, line := range lines {
			b.wantLevel(t, line.SKU, 50, 0)
		}
		b.audit(t, "")
	})
}
