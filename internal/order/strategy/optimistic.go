package strategy

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// optimisticTries bounds how often a buyer starts over. Each failed try means that another order changed the row first,
// so that an order in a crowd needs many.
const optimisticTries = 100

// Optimistic has no lock and does not wait: a buyer that finds the row changed since it was read starts over.
type Optimistic struct {
	Shop
}

// Sell reads, thinks, and writes back if the row is what was read.
func (s Optimistic) Sell(ctx context.Context, d *order.Draft) error {
	for try := 1; ; try++ {
		err := s.try(ctx, d)
		if !errors.Is(err, order.ErrChanged) {
			return err
		}
		if try == optimisticTries {
			return fmt.Errorf("%w: the stock had changed at each of %d tries", order.ErrBusy, try)
		}
		if err := order.Pause(ctx, backOff(try)); err != nil {
			return err
		}
	}
}

func (s Optimistic) try(ctx context.Context, d *order.Draft) error {
	levels, err := s.read(ctx, d)
	if err != nil {
		return err
	}
	if err := levels.Cover(d); err != nil {
		return err
	}
	if err := think(ctx, d); err != nil {
		return err
	}
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		// UPDATE ... WHERE available = what was read
		return s.claimTakeInsert(tx, stock.Optimistic, d, levels, nil)
	})
}
