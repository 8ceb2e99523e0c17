package order_test

import (
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
)

// shopAt returns a shop whose database's clock is set by the function it returns.
func shopAt(t *testing.T, kind storetest.Kind) (*bundle, func(unix int64)) {
	t.Helper()
	db := kind.New(t, "").Migrated(t)
	conns, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	conns.SetMaxOpenConns(1) // the clock is set for one connection
	b := setup(t, db, lock.NewMemory(), 10*time.Second)
	b.supply(t, "mug", 10)
	return b, func(unix int64) {
		t.Helper()
		if err := db.Exec("SET timestamp = ?", unix).Error; err != nil {
			t.Fatal(err)
		}
	}
}

func wantTimes(t *testing.T, o order.Order, created time.Time) {
	t.Helper()
	if !o.CreatedAt.Equal(created) || !o.ExpiresAt.Equal(created.Add(order.DefaultHold)) {
		t.Errorf("created at %v, expires at %v, want %v and %v later", o.CreatedAt, o.ExpiresAt, created, order.DefaultHold)
	}
}

// "An order's times go by the database's clock as it was when the stock was
// read", so that a step of that clock is followed by the next order.
func TestService_Place_clockSteps(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		b, set := shopAt(t, kind)
		for i, unix := range []int64{2_000_000_000, 2_000_003_600, 1_900_000_000} {
			set(unix)
			r := buy(fmt.Sprint(i), "mug", 1)
			r.Strategy = "redis"
			o, _, err := b.Place(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			wantTimes(t, o, time.Unix(unix, 0))
			if _, err := b.Pay(t.Context(), "ann", o.ID); err != nil {
				t.Errorf("pay in time: %v", err)
			}
		}
	})
}

// "In a lane the stock may have been read up to a second before, and the time since
// then is counted on": a step is followed after that second.
func TestLanes_clockSteps(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		b, set := shopAt(t, kind)
		clock := time.Now()
		b.SetRecentClock(func() time.Time { return clock })
		const read, stepped = 2_000_000_000, 1_900_000_000
		for i, c := range []struct {
			unix int64
			wait time.Duration
			want time.Time
		}{
			{read, 0, time.Unix(read, 0)},
			{stepped, 1500*time.Microsecond + 300, time.Unix(read, 0).Add(1500 * time.Microsecond)}, // a database has no nanoseconds
			{stepped, order.RecentFor - 1501*time.Microsecond, time.Unix(read, 0).Add(order.RecentFor - time.Microsecond)},
			{stepped, time.Microsecond, time.Unix(stepped, 0)},
		} {
			set(c.unix)
			clock = clock.Add(c.wait)
			o := b.place(t, fmt.Sprint(i), "mug", 1)
			wantTimes(t, o, c.want)
			again, err := b.Order(t.Context(), "ann", o.ID)
			if err != nil || !again.CreatedAt.Equal(o.CreatedAt) || !again.ExpiresAt.Equal(o.ExpiresAt) {
				t.Errorf("%d: kept as %+v, %v, answered as %+v", i, again, err, o)
			}
		}
	})
}
