package order_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// withMaxOpen lets so many orders of a buyer be pending.
func (b *bundle) withMaxOpen(t *testing.T, open int) *bundle {
	t.Helper()
	b.Service = b.with(t, func(c *order.Config) { c.MaxOpen = open })
	return b
}

// limitPerBuyer limits what a buyer may have of a SKU.
func (b *bundle) limitPerBuyer(t *testing.T, sku string, units int64) {
	t.Helper()
	if _, err := b.stock.SetLimitPerBuyer(t.Context(), sku, units); err != nil {
		t.Fatal(err)
	}
}

// wantRefused fails unless the order is refused with this error, in these words.
func (b *bundle) wantRefused(t *testing.T, r order.Request, want error, words string) {
	t.Helper()
	_, _, err := b.Place(t.Context(), r)
	if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), words) {
		t.Errorf("place %s: got %v, want %v with %q", r.Key, err, want, words)
	}
}

// "A buyer has at most Config.MaxOpen pending orders." "How an order ends makes
// room." "A replay is answered also at the limit."
func TestService_maxOpen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second).withMaxOpen(t, 2)
		b.supply(t, "mug", 20)
		var open []order.Order
		for i := range 2 {
			open = append(open, b.place(t, fmt.Sprintf("key-%d", i), "mug", 2))
		}
		b.wantRefused(t, buy("key-2", "mug", 1), order.ErrTooManyOpen, "2 are pending, at most 2 are allowed")
		b.wantEnd(t, open[0], order.Pending, "mug", stock.Level{Supplied: 20, Available: 16, Reserved: 4})
		var full *order.OpenError
		if _, _, err := b.Place(t.Context(), buy("key-2", "mug", 1)); !errors.As(err, &full) ||
			full.Open != 2 || full.Max != 2 || full.Wait <= 0 || full.Wait > order.DefaultHold {
			t.Errorf("got %+v, want 2 of 2, and until the first expires, at most %v", full, order.DefaultHold)
		}
		if o, replayed, err := b.Place(t.Context(), buy("key-0", "mug", 2)); err != nil || !replayed || o.ID != open[0].ID {
			t.Errorf("replay: got %s, %v, %v, want the first order", o.ID, replayed, err)
		}
		bobs := buy("key-2", "mug", 1)
		bobs.Buyer = "bob"
		if _, _, err := b.Place(t.Context(), bobs); err != nil {
			t.Errorf("another buyer: %v", err)
		}

		for i, end := range []func(order.Order) error{
			func(o order.Order) error { _, err := b.Pay(t.Context(), "ann", o.ID); return err },
			func(o order.Order) error { _, err := b.Cancel(t.Context(), "ann", o.ID); return err },
			func(o order.Order) error {
				b.makeDue(t, o)
				b.wantRefused(t, buy("due", "mug", 1), order.ErrTooManyOpen, "2 are pending") // it still holds its units
				_, err := b.ExpireDue(t.Context(), 10)
				return err
			},
		} {
			if err := end(open[0]); err != nil {
				t.Fatal(err)
			}
			open = append(open[1:], b.place(t, fmt.Sprintf("after-%d", i), "mug", 2))
			b.wantRefused(t, buy("too-many", "mug", 1), order.ErrTooManyOpen, "")
		}
		b.audit(t, "mug")
	})
}

// "A buyer has, of each SKU, at most its LimitPerBuyer units in orders that are
// pending or paid." What is cancelled or expired may be bought again.
func TestService_purchaseLimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 20)
		b.supply(t, "cup", 20)
		b.limitPerBuyer(t, "mug", 3)
		b.wantRefused(t, buy("four", "mug", 4), order.ErrPurchaseLimit, `"mug": more units than a buyer may have: 3 for each buyer, 3 of them left to buy`)
		split := buy("two and two", "mug", 2)
		split.Lines = append(split.Lines, split.Lines[0])
		b.wantRefused(t, split, order.ErrPurchaseLimit, "3 of them left to buy")

		two := b.place(t, "two", "mug", 2)
		b.wantRefused(t, buy("two more", "mug", 2), order.ErrPurchaseLimit, "1 of them left to buy")
		mixed := buy("mixed", "cup", 5)
		mixed.Lines = append(mixed.Lines, order.RequestLine{SKU: "mug", Units: 2})
		b.wantRefused(t, mixed, order.ErrPurchaseLimit, `"mug"`)
		if got, want := b.audit(t, "cup").Level, (stock.Level{Supplied: 20, Available: 20}); got != want {
			t.Errorf("cup: got %v, want %v: all or nothing", got, want)
		}
		one := b.place(t, "one", "mug", 1)
		b.wantRefused(t, buy("one more", "mug", 1), order.ErrPurchaseLimit, "0 of them left to buy")
		if _, replayed, err := b.Place(t.Context(), buy("two", "mug", 2)); err != nil || !replayed {
			t.Errorf("replay: got %v, %v", replayed, err)
		}
		bobs := buy("three", "mug", 3)
		bobs.Buyer = "bob"
		if _, _, err := b.Place(t.Context(), bobs); err != nil {
			t.Errorf("another buyer: %v", err)
		}

		if _, err := b.Pay(t.Context(), "ann", two.ID); err != nil {
			t.Fatal(err)
		}
		b.wantRefused(t, buy("paid counts", "mug", 1), order.ErrPurchaseLimit, "")
		if _, err := b.Cancel(t.Context(), "ann", one.ID); err != nil {
			t.Fatal(err)
		}
		one = b.place(t, "after a cancellation", "mug", 1)
		b.wantRefused(t, buy("full again", "mug", 1), order.ErrPurchaseLimit, "")
		b.makeDue(t, one)
		b.wantRefused(t, buy("due counts", "mug", 1), order.ErrPurchaseLimit, "")
		if _, err := b.ExpireDue(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		b.place(t, "after an expiry", "mug", 1)

		b.limitPerBuyer(t, "mug", 2) // less than she has
		b.wantRefused(t, buy("lowered", "mug", 1), order.ErrPurchaseLimit, "2 for each buyer, 0 of them left to buy")
		b.limitPerBuyer(t, "mug", 0)
		b.place(t, "no limit", "mug", 10)
		b.audit(t, "")
	})
}
