package strategy

import (
	"context"
	"errors"

	"example.com/shop/internal/order"
)

// PreDeductOnly is WRONG: the count in Redis alone decides, and the order is written without a look at the stock, whose row
// is to follow some day. A count that is lost is begun again with units that are sold already, and so is one that two
// instances begin.
type PreDeductOnly struct {
	PreDeduct
}

// Sell takes the units from the counts and writes the order.
func (s PreDeductOnly) Sell(ctx context.Context, d *order.Draft) error {
	taken, err := takeCounted(ctx, s, d) // 1. in Redis: DECRBY, if enough are left
	if err == nil {
		err = s.write(ctx, d) // 2. in the database: INSERT
	}
	if err != nil && !errors.Is(err, order.ErrUnknownOutcome) {
		s.giveBack(ctx, taken)
	}
	return err
}

// load is WRONG: a count that another instance has just loaded begins anew, with units that are sold since.
func (s PreDeductOnly) load(ctx context.Context, line order.Line) error {
	levels, err := s.Store.Levels(ctx, line)
	if err != nil {
		return err
	}
	return s.Redis.Set(ctx, countKey(line.SKU), levels.SKUs[line.SKU].Available, 0).Err()
}

func (s PreDeductOnly) write(ctx context.Context, d *order.Draft) error {
	levels, err := s.read(ctx, d) // for the prices
	if err != nil {
		return err
	}
	return s.Store.InTx(ctx, func(tx order.Tx) error {
		if err := s.lockBuyerAndClaimKey(tx, d); err != nil {
			return err
		}
		return s.insert(tx, d, levels, nil) // no take before it: the row of the stock stays as it is
	})
}
