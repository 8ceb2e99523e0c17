package orderstore_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// "Move ends a pending order: as Expired if it is due by the database's clock, as
// anything else if it is not. It returns the order's state, also where that let
// nothing be moved."
func TestTx_Move(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		s := newShop(t, db, 100, "mug")
		const pending, paid, cancelled, expired = order.Pending, order.Paid, order.Cancelled, order.Expired
		for i, c := range []struct {
			was   order.Status
			due   bool
			to    order.Status
			now   order.Status
			moved bool
		}{
			{pending, false, paid, paid, true},
			{pending, false, cancelled, cancelled, true},
			{pending, false, expired, pending, false},
			{pending, true, expired, expired, true},
			{pending, true, paid, pending, false},
			{pending, true, cancelled, pending, false},
			{paid, false, paid, paid, false},
			{paid, false, cancelled, paid, false},
			{paid, true, expired, paid, false},
			{cancelled, false, paid, cancelled, false},
			{cancelled, true, expired, cancelled, false},
			{expired, true, paid, expired, false},
			{expired, false, paid, expired, false},
			{expired, true, cancelled, expired, false},
			{expired, true, expired, expired, false},
		} {
			o := draft("ann", string(rune('a'+i)), "mug")
			o.Status = c.was
			if c.due {
				o.ExpiresAt = placedAt
			}
			s.mustPlace(t, o)
			now, moved, err := moveAlone(t, s, o, c.to)
			if now != c.now || moved != c.moved || err != nil {
				t.Errorf("%+v: got %s, %v, %v", c, now, moved, err)
			}
			if read, err := s.orders.Order(t.Context(), o.ID); err != nil || read.Status != c.now {
				t.Errorf("%+v: read %s, %v", c, read.Status, err)
			}
		}
		if _, _, err := moveAlone(t, s, draft("ann", "none"), paid); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("no such order: got %v, want ErrNotFound", err)
		}
	})
}
