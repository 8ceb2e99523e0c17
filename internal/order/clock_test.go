package order_test

import (
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// "An order's times go by the database's clock as it was when the stock was
// read", so that a step of that clock is followed by the next order.
func TestService_Place_clockSteps(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		db := kind.New(t, "").Migrated(t)
		conns, err := db.DB()
		if err != nil {
			t.Fatal(err)
		}
		conns.SetMaxOpenConns(1) // the clock is set for one connection
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		for i, unix := range []int64{2_000_000_000, 2_000_003_600, 1_900_000_000} {
			if err := db.Exec("SET timestamp = ?", unix).Error; err != nil {
				t.Fatal(err)
			}
			o := b.place(t, fmt.Sprint(i), "mug", 1)
			if want := time.Unix(unix, 0).UTC(); o.CreatedAt != want || o.ExpiresAt != want.Add(order.DefaultHold) {
				t.Errorf("created at %v, expires at %v, want %v and %v later", o.CreatedAt, o.ExpiresAt, want, order.DefaultHold)
			}
			if _, err := b.Pay(t.Context(), "ann", o.ID); err != nil {
				t.Errorf("pay in time: %v", err)
			}
		}
	})
}
