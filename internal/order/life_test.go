package order_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// place takes an order of units of a SKU.
func (b *bundle) place(t *testing.T, key, sku string, units int64) order.Order {
	t.Helper()
	o, _, err := b.Place(t.Context(), buy(key, sku, units))
	if err != nil {
		t.Fatalf("place %s: %v", key, err)
	}
	return o
}

// payment asks that an order be paid, without an idempotency key.
func payment(o order.Order) order.EndRequest {
	return order.EndRequest{Buyer: o.Buyer, OrderID: o.ID}
}

// Pay pays without an idempotency key.
func (b *bundle) Pay(ctx context.Context, buyer, id string) (order.Order, error) {
	o, err := b.Service.Pay(ctx, order.EndRequest{Buyer: buyer, OrderID: id})
	return o.Order, err
}

// Cancel cancels without an idempotency key.
func (b *bundle) Cancel(ctx context.Context, buyer, id string) (order.Order, error) {
	o, err := b.Service.Cancel(ctx, order.EndRequest{Buyer: buyer, OrderID: id})
	return o.Order, err
}

// makeDue lets the orders' time be over, by the database's clock, in this order.
func (b *bundle) makeDue(t *testing.T, orders ...order.Order) {
	t.Helper()
	for i, o := range orders {
		if err := b.db.Exec("UPDATE orders SET expires_at = ? WHERE id = ?", fmt.Sprintf("2020-01-01 00:00:%02d.000000", i), o.ID).Error; err != nil {
			t.Fatal(err)
		}
	}
}

// wantEnd fails unless the order is in this state, the SKU at this level, and the
// audit clean.
func (b *bundle) wantEnd(t *testing.T, o order.Order, status order.Status, sku string, level stock.Level) {
	t.Helper()
	now, err := b.Order(t.Context(), o.Buyer, o.ID)
	if err != nil || now.Status != status {
		t.Errorf("order is %q, %v, want %q", now.Status, err, status)
	}
	if got := b.audit(t, sku).Level; got != level {
		t.Errorf("level %v, want %v", got, level)
	}
}

// wantState fails unless err says that the order is in this state.
func wantState(t *testing.T, err error, status order.Status) {
	t.Helper()
	var state *order.StateError
	if !errors.Is(err, order.ErrState) || !errors.As(err, &state) || state.Status != status {
		t.Errorf("got %v, want an ErrState that says %s", err, status)
	}
	if errors.Is(err, order.ErrExpired) != (status == order.Expired) {
		t.Errorf("got %v, which is ErrExpired or not against its state %s", err, status)
	}
}

// "An order is pending until it expires": 15 minutes, by the database's clock.
func TestService_Place_expiresAt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		o := b.place(t, "k1", "mug", 1)
		now, err := store.Now(t.Context(), b.db)
		if err != nil {
			t.Fatal(err)
		}
		const tick = time.Millisecond // of SQLite's clock
		if left := o.ExpiresAt.Sub(now); left > order.DefaultHold+tick || left < order.DefaultHold-time.Minute {
			t.Errorf("expires in %v, want %v", left, order.DefaultHold)
		}
		read, err := b.Order(t.Context(), "ann", o.ID)
		if err != nil || !read.ExpiresAt.Equal(o.ExpiresAt) || read.Status != order.Pending {
			t.Errorf("read %+v, %v, want it as it was placed", read, err)
		}
	})
}

// "Pay makes the buyer's pending order paid: its units become sold. An order that
// is paid already is returned as it is."
func TestService_Pay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		o := b.place(t, "k1", "mug", 3)
		if _, err := b.Pay(t.Context(), "bob", o.ID); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("another buyer pays: %v, want ErrNotFound", err)
		}
		for range 3 {
			paid, err := b.Pay(t.Context(), "ann", o.ID)
			if err != nil || paid.Status != order.Paid || paid.Total != o.Total {
				t.Errorf("got %+v, %v, want it paid", paid, err)
			}
		}
		_, err := b.Cancel(t.Context(), "ann", o.ID)
		wantState(t, err, order.Paid)
		b.makeDue(t, o)
		if n, err := b.ExpireDue(t.Context(), 10); n != 0 || err != nil {
			t.Errorf("expired %d, %v, want none: it is paid", n, err)
		}
		again, replayed, err := b.Place(t.Context(), buy("k1", "mug", 3))
		if err != nil || !replayed || again.ID != o.ID || again.Status != order.Pending {
			t.Errorf("replay: %+v, %v, %v, want the order as it was placed", again, replayed, err)
		}
		b.wantEnd(t, o, order.Paid, "mug", stock.Level{Supplied: 10, Available: 7, Sold: 3})
	})
}

// "Cancel makes the buyer's pending order cancelled: its units become available",
// once, and can be sold again.
func TestService_Cancel(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 3)
		o := b.place(t, "k1", "mug", 3)
		if _, err := b.Cancel(t.Context(), "bob", o.ID); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("another buyer cancels: %v, want ErrNotFound", err)
		}
		for range 3 {
			if got, err := b.Cancel(t.Context(), "ann", o.ID); err != nil || got.Status != order.Cancelled {
				t.Errorf("got %+v, %v, want it cancelled", got, err)
			}
		}
		_, err := b.Pay(t.Context(), "ann", o.ID)
		wantState(t, err, order.Cancelled)
		b.wantEnd(t, o, order.Cancelled, "mug", stock.Level{Supplied: 3, Available: 3})
		next := b.place(t, "k2", "mug", 3)
		b.wantEnd(t, next, order.Pending, "mug", stock.Level{Supplied: 3, Reserved: 3})
	})
}

// "A late payment of an expired order is refused clearly", also of one that "is
// due, and the sweeper has not come by yet: who finds it expires it".
func TestService_Pay_late(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		for name, end := range map[string]func(o order.Order) (order.Order, error){
			"pay":    func(o order.Order) (order.Order, error) { return b.Pay(t.Context(), "ann", o.ID) },
			"cancel": func(o order.Order) (order.Order, error) { return b.Cancel(t.Context(), "ann", o.ID) },
		} {
			for _, swept := range []bool{false, true} {
				sku := name + map[bool]string{false: "-unswept", true: "-swept"}[swept]
				b.supply(t, sku, 5)
				o := b.place(t, sku, sku, 2)
				b.makeDue(t, o)
				if swept {
					if n, err := b.ExpireDue(t.Context(), 10); n != 1 || err != nil {
						t.Errorf("expired %d, %v, want 1", n, err)
					}
				}
				for range 2 {
					_, err := end(o)
					wantState(t, err, order.Expired)
				}
				if n, err := b.ExpireDue(t.Context(), 10); n != 0 || err != nil {
					t.Errorf("expired %d again, %v, want 0", n, err)
				}
				b.wantEnd(t, o, order.Expired, sku, stock.Level{Supplied: 5, Available: 5})
			}
		}
	})
}
