package order_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// gate lets a test do something around the transactions of a service.
type gate struct {
	*orderstore.Store
	before func()            // its BEGIN
	commit func()            // its COMMIT
	refuse error             // instead of its COMMIT
	answer func(error) error // to its COMMIT
}

func (g *gate) InTx(ctx context.Context, fn func(order.Tx) error) error {
	if g.before != nil {
		g.before()
	}
	err := g.Store.InTx(ctx, func(tx order.Tx) error {
		err := fn(tx)
		if err == nil && g.commit != nil {
			g.commit()
		}
		return errors.Join(err, g.refuse)
	})
	if g.answer != nil {
		err = g.answer(err)
	}
	return err
}

// gated returns an instance of b's shop whose transactions go through a gate.
func gated(t *testing.T, b *bundle) (*order.Service, *gate) {
	t.Helper()
	g := &gate{Store: b.orders}
	return b.with(t, func(c *order.Config) { c.Store = g }), g
}

// expireIn sets when an order expires, by the database's clock.
func (b *bundle) expireIn(t *testing.T, o order.Order, left time.Duration) (at time.Time) {
	t.Helper()
	now, err := store.Now(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	at = now.Add(left)
	const layout = "2006-01-02 15:04:05.000000"
	if err := b.db.Exec("UPDATE orders SET expires_at = ? WHERE id = ?", at.Format(layout), o.ID).Error; err != nil {
		t.Fatal(err)
	}
	return at
}

// awaitClock returns when the database's clock has reached a time.
func (b *bundle) awaitClock(t *testing.T, at time.Time) {
	t.Helper()
	for {
		now, err := store.Now(t.Context(), b.db)
		if err != nil {
			t.Error(err)
			return
		}
		if !now.Before(at) {
			return
		}
	}
}

// "Pay against expiry at the same instant ends as exactly one of the two": the
// first has changed the rows and is about to commit when the second begins.
func TestService_payAgainstExpiry(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "expiry", 5)
		o := b.place(t, "expiry", "expiry", 2)
		if pay, sweep := b.race(t, o, 0, false); sweep != nil || !errors.Is(pay, order.ErrExpired) {
			t.Errorf("expiry first: sweep %v, pay %v, want ErrExpired", sweep, pay)
		}
		b.wantEnd(t, o, order.Expired, "expiry", stock.Level{Supplied: 5, Available: 5})

		// The payment must be in time, and then its time must be over: on a slow
		// machine that takes another try.
		for left := 500 * time.Millisecond; ; left *= 2 {
			name := fmt.Sprint("pay-", left)
			b.supply(t, name, 5)
			o := b.place(t, name, name, 2)
			pay, sweep := b.race(t, o, left, true)
			if errors.Is(pay, order.ErrExpired) && left < time.Minute {
				continue
			}
			if pay != nil || sweep != nil {
				t.Errorf("payment first: pay %v, sweep %v", pay, sweep)
			}
			b.wantEnd(t, o, order.Paid, name, stock.Level{Supplied: 5, Available: 3, Sold: 2})
			return
		}
	})
}

// race pays an order that has some time left, and sweeps when that is over. The
// second begins when the first has changed the rows and not yet committed.
func (b *bundle) race(t *testing.T, o order.Order, left time.Duration, payFirst bool) (pay, sweep error) {
	t.Helper()
	one, oneGate := gated(t, b)
	two, twoGate := gated(t, b)
	doPay := func(s *order.Service) { _, pay = s.Pay(t.Context(), payment(o)) }
	doSweep := func(s *order.Service) { _, sweep = s.ExpireDue(t.Context(), 1) }
	first, second := doSweep, doPay
	if payFirst {
		first, second = doPay, doSweep
	}
	due := b.expireIn(t, o, left)
	begun, done := make(chan struct{}), make(chan struct{})
	twoGate.before = func() { twoGate.before = nil; close(begun) }
	oneGate.commit = func() {
		oneGate.commit = nil
		b.awaitClock(t, due)
		go func() { defer close(done); second(two) }()
		select {
		case <-begun:
		case <-done: // it failed before
		}
	}
	if first(one); oneGate.commit != nil {
		t.Fatalf("the first came to no commit: pay %v, sweep %v", pay, sweep)
	}
	<-done
	return pay, sweep
}

// The same in a crowd: orders expire while their buyers pay and cancel them, on
// three instances that all sweep. Each ends as one thing, and as what its buyers
// were told.
func TestService_endsOnce(t *testing.T) {
	t.Parallel()
	const orders = 30
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		b := shops[0]
		b.supply(t, "mug", orders)
		placed := make([]order.Order, orders)
		for i := range placed {
			placed[i] = b.place(t, fmt.Sprint(i), "mug", 1)
		}
		for i, o := range placed {
			b.expireIn(t, o, time.Duration(i-orders/2)*2*time.Millisecond) // one after the other
		}
		told := make([][2]error, orders)
		var swept atomic.Int64
		var late atomic.Int64
		atOnce(2*orders+len(shops), func(i int) {
			switch {
			case i < orders:
				_, told[i][0] = shops[i%3].Pay(t.Context(), "ann", placed[i].ID)
			case i < 2*orders:
				_, told[i-orders][1] = shops[(i+1)%3].Cancel(t.Context(), "ann", placed[i-orders].ID)
			default:
				n, err := shops[i%3].ExpireDue(t.Context(), orders)
				if err != nil {
					t.Errorf("sweep: %v", err)
				}
				swept.Add(int64(n))
			}
		})
		var paid int64
		for i, o := range placed {
			now, err := b.Order(t.Context(), "ann", o.ID)
			if err != nil {
				t.Fatal(err)
			}
			for j, as := range []order.Status{order.Paid, order.Cancelled} {
				if now.Status != as {
					wantState(t, told[i][j], now.Status)
				} else if told[i][j] != nil {
					t.Errorf("order %d is %s, its buyer was told %v", i, as, told[i][j])
				}
			}
			switch now.Status {
			case order.Paid:
				paid++
			case order.Expired:
				late.Add(1)
			case order.Pending, order.Cancelled:
			}
		}
		if swept.Load() > late.Load() {
			t.Errorf("sweepers say %d expired, %d are", swept.Load(), late.Load())
		}
		if got, want := b.audit(t, "mug").Level, (stock.Level{Supplied: orders, Available: orders - paid, Sold: paid}); got != want {
			t.Errorf("level %v, want %v", got, want)
		}
	})
}
