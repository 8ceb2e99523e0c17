package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"example.com/shop/internal/stock"
)

// settle makes a transition and tells in which state that left the order, and
// whether it was this one that ended it. An unanswered commit is asked for again:
// the order's row is locked until the first one has ended, and then tells what it
// came to. (If somebody else ended it so in between, that counts as this one.)
func (s *Service) settle(ctx context.Context, o Order, to Status, claim func(Tx) error) (now Status, moved bool, err error) {
	defer func() {
		// Where it is unknown whether units came back, they may have.
		if to != Paid && (moved || errors.Is(err, ErrUnsettled)) {
			s.Restocked(o.skus()...)
		}
	}()
	now, moved, err = s.transit(ctx, o, to, claim)
	if !errors.Is(err, ErrUnknownOutcome) {
		return now, moved, err
	}
	did := moved // or would have
	err = ask(ctx, func(ctx context.Context) (err error) {
		now, moved, err = s.transit(ctx, o, to, claim)
		did = did || moved
		return err
	})
	if err != nil {
		// Not wrapped: that error is about an order being placed, or about the last time alone.
		return "", false, fmt.Errorf("%w: %s", ErrUnsettled, err.Error())
	}
	return now, did && now == to, nil
}

// transit is one transaction: the order's row decides whether it may end, then
// the key is claimed, its units move and the ledger says so. It returns the
// order's state, and whether this transaction brought it there, or would have, if it
// is unknown whether it was done. Where the order has ended so already the key is
// claimed too, and may be taken.
//
// Units come after the key because an order is placed in that sequence, too: of
// two transactions one waits for the other, never each.
func (s *Service) transit(ctx context.Context, o Order, to Status, claim func(Tx) error) (now Status, moved bool, err error) {
	err = s.store.InTx(ctx, func(tx Tx) (err error) {
		if now, moved, err = tx.Move(o.ID, to); err != nil || now != to {
			return err
		}
		if err = claim(tx); !moved && errors.Is(err, ErrKeyTaken) {
			return nil // to whoever claims, that is an answer
		}
		if err != nil || !moved {
			return err
		}
		return s.settleLines(tx, o, settlement(to))
	})
	return now, moved && (err == nil || errors.Is(err, ErrUnknownOutcome)), err
}

// settlement is what becomes of the units of an order that ends.
func settlement(as Status) stock.Kind {
	if as == Paid {
		return stock.Sell
	}
	return stock.Release
}

// settleLines moves the units in the order of their names, as all transactions
// of several lines do.
func (s *Service) settleLines(tx Tx, o Order, kind stock.Kind) error {
	lines := slices.Clone(o.Lines)
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.SKU, b.SKU) })
	movements := make([]stock.Movement, len(lines))
	for i, line := range lines {
		if err := tx.Settle(kind, line.SKU, line.Units); err != nil {
			return err
		}
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("new movement id: %w", err)
		}
		movements[i] = stock.Movement{
			ID:      id.String(),
			SKU:     line.SKU,
			Kind:    kind,
			OrderID: o.ID,
			Change:  stock.Settle(kind, line.Units),
			At:      s.now().UTC(),
		}
	}
	return tx.Record(movements...)
}
