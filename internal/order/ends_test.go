package order_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "A pending order ends as Expired if it is due by the database's clock, and as Paid or Cancelled if it is not due."
// "ErrNotFound if the buyer has no such order". All of these end in one batch.
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
			first   bool
		}{
			{pending, false, paid, paid, true}, {pending, false, cancelled, cancelled, true}, {pending, false, expired, pending, false},
			{pending, true, expired, expired, true}, {pending, true, paid, pending, false}, {pending, true, cancelled, pending, false},
			{paid, false, paid, paid, false}, {paid, false, cancelled, paid, false}, {paid, true, expired, paid, false},
			{cancelled, false, paid, cancelled, false}, {cancelled, true, expired, cancelled, false},
			{expired, true, paid, expired, false}, {expired, false, paid, expired, false},
			{expired, true, cancelled, expired, false}, {expired, true, expired, expired, false},
		}
		endings := make([]order.Ending, len(cases))
		for i, c := range cases {
			o := b.place(t, fmt.Sprint(i), "mug", 1)
			if c.due {
				b.makeDue(t, o)
			}
			b.exec(t, "UPDATE orders SET status = ? WHERE id = ?", c.was, o.ID)
			endings[i] = order.Ending{OrderID: o.ID, As: c.to}
			if i%2 == 0 {
				endings[i].Buyer = o.Buyer
			}
		}
		others := b.place(t, "others", "mug", 1)
		endings = append(endings,
			order.Ending{OrderID: order.NewID(), Buyer: "ann", As: paid}, order.Ending{OrderID: others.ID, Buyer: "bob", As: cancelled})
		outcomes := b.batches.End(t.Context(), endings...)
		for _, o := range outcomes[len(cases):] {
			wantErr(t, "not found", o.Err, order.ErrNotFound)
		}
		for i, c := range cases {
			got := outcomes[i]
			if got.First != c.first || got.Due != (c.now == pending && c.due) || got.Err != nil {
				t.Errorf("%+v: got %+v", c, got)
			}
			read, err := b.Order(t.Context(), "ann", endings[i].OrderID)
			if diff := gocmp.Diff(read, got.Order); err != nil || diff != "" || read.Status != c.now {
				t.Errorf("%+v: read %s, %v (-read +got):\n%s", c, read.Status, err, diff)
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
		endings := make([]order.Ending, 100)
		for i := range endings {
			o := b.mustPlace(t, order.Request{Buyer: nth(i), Key: "key", Lines: lines})
			endings[i] = order.Ending{OrderID: o.ID, As: []order.Status{order.Paid, order.Cancelled}[i%2]}
		}
		for _, o := range b.batches.End(t.Context(), endings...) {
			if o.Err != nil || !o.First {
				t.Fatalf("got %+v", o)
			}
		}
		for _, line := range lines {
			b.wantLevel(t, line.SKU, 50, 0)
		}
		b.audit(t, "")
	})
}
