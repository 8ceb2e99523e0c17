package order_test

import (
	"cmp"
	"context"

	"example.com/shop/internal/order"
)

// spyStore is a Store that calls a test around what it does. Its functions may be nil.
type spyStore struct {
	order.Store
	beforeLevels func()
	afterLevels  func()
	beforeClaims func()
	beforeTx     func() error // its error is the transaction's
	afterTx      func(err error)
	aroundTx     func(order.Tx) order.Tx
	beforeCommit func()
	refuseCommit error                 // instead of the COMMIT
	answer       func(err error) error // another answer to the transaction
}

// Levels implements order.Store.
func (s *spyStore) Levels(ctx context.Context, lines ...order.Line) (order.Levels, error) {
	call(s.beforeLevels)
	levels, err := s.Store.Levels(ctx, lines...)
	call(s.afterLevels)
	return levels, err
}

// UsedKeys implements order.Store.
func (s *spyStore) UsedKeys(ctx context.Context, keys ...order.BuyerKey) (map[order.BuyerKey]order.UsedKey, error) {
	call(s.beforeClaims)
	return s.Store.UsedKeys(ctx, keys...)
}

// InTx implements order.Store.
func (s *spyStore) InTx(ctx context.Context, fn func(order.Tx) error) error {
	if s.beforeTx != nil {
		if err := s.beforeTx(); err != nil {
			return err
		}
	}
	err := s.Store.InTx(ctx, func(tx order.Tx) error {
		if s.aroundTx != nil {
			tx = s.aroundTx(tx)
		}
		err := fn(tx)
		if err == nil {
			call(s.beforeCommit)
		}
		return cmp.Or(err, s.refuseCommit)
	})
	if s.answer != nil {
		err = s.answer(err)
	}
	if s.afterTx != nil {
		s.afterTx(err)
	}
	return err
}

func call(f func()) {
	if f != nil {
		f()
	}
}
