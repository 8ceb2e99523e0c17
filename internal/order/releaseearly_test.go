package order_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/orderstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// beforeCommit calls a function ahead of the first COMMIT.
type beforeCommit struct {
	*orderstore.Store
	do func()
}

func (s *beforeCommit) InTx(ctx context.Context, fn func(order.Tx) error) error {
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		err := fn(tx)
		if do := s.do; err == nil && do != nil {
			s.do = nil
			do()
		}
		return err
	})
}

// "The right lock, given back before the COMMIT: the next buyer reads stock that
// is about to change." The same every time: the second takes the lock and reads
// before the first has committed.
func TestService_Place_releaseEarly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 1)
		slow := &beforeCommit{Store: b.orders}
		config := b.config
		config.Store = slow
		first, err := order.New(config)
		if err != nil {
			t.Fatal(err)
		}
		place := func(s *order.Service, key string) error {
			r := buy(key, "mug", 1)
			r.Strategy = "release-before-commit"
			_, _, err := s.Place(t.Context(), r)
			return err
		}
		second := make(chan error, 1)
		slow.do = func() {
			read := make(chan struct{})
			b.stock.afterRead = func() { close(read) }
			go func() { second <- place(b.Service, "second") }()
			select {
			case <-read:
			case <-time.After(30 * time.Second):
				t.Error("the second buyer did not get the lock before the first had committed")
			}
		}
		if err := place(first, "first"); err != nil {
			t.Errorf("first: %v", err)
		}
		if err := <-second; err != nil {
			t.Errorf("second: %v", err)
		}
		var account stock.Account
		err = b.orders.Audit(t.Context(), "mug",
			func(a stock.Account) error { account = a; return nil },
			func(stock.Difference) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if account.Oversold() != 1 {
			t.Errorf("account %+v, want 1 oversold", account)
		}
	})
}
