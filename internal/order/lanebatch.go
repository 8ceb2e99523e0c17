package order

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/stock"
)

// batchTries is how often a batch is planned: what was seen before may be out of date,
// and somebody without a lease may be faster with the units, or with a key.
const batchTries = 4

// sellTo serves a batch under the lease of its SKU and returns the wishes that it
// has not answered: with the error that all of them get, or without one, if they
// are to go on one by one.
//
// A batch that can have all it wants by what was seen recently asks nothing: its
// transaction finds out. Any other looks.
func (s *Service) sellTo(ctx context.Context, sku string, how Strategy, batch []*wish, held leases, look *look, h *headStart) (rest []*wish, err error) {
	p, planned := h.planAhead(ctx, batch)
	if !planned {
		p, planned = s.planUnseen(sku, batch)
	}
	for range batchTries {
		watched := watch(ctx, batch)
		if !planned {
			if p, rest, err = s.planSeen(watched, sku, batch, look); err != nil {
				return rest, err
			}
		}
		left, again, err := s.trySale(watched, how, p, held)
		if !again {
			return left, err
		}
		batch, planned = left, false
	}
	return batch, nil
}

// planSeen looks and plans what a batch is sold. It answers replays; where it fails,
// the rest is to be told why.
//
// The stock is read first and the keys are looked at after that: whoever took
// units that are missing then had its key on record before, and nobody is told
// that the units are gone which its own twin has bought.
func (s *Service) planSeen(ctx context.Context, sku string, batch []*wish, look *look) (p sale, rest []*wish, err error) {
	look.again()
	seen, now, unread := s.stock.SKUs(ctx, []string{sku})
	if unread != nil && !errors.Is(unread, stock.ErrUnknownSKU) {
		return sale{}, batch, unread
	}
	markRead(ctx, seen)
	if unread == nil {
		s.recent.saw(sight{seen[0], now})
	}
	if rest, err = s.replays(ctx, batch); err != nil {
		return sale{}, batch, err
	}
	if unread != nil {
		return sale{}, rest, unread
	}
	look.saw(seen[0])
	return s.plan(rest, sight{seen[0], now}), nil, nil
}

// trySale carries a sale out and returns the wishes that have no answer. With again,
// they are to be planned anew; with an error, all of them get that; with neither, they
// go on one by one.
func (s *Service) trySale(ctx context.Context, how Strategy, p sale, held leases) (rest []*wish, again bool, err error) {
	if len(p.orders) == 0 {
		p.tell()
		return nil, false, nil
	}
	if err := s.think(ctx, Request{Think: p.think}); err != nil {
		return p.all, false, err
	}
	err = s.book(ctx, how, p, held)
	var over *overError
	switch {
	case err == nil:
		p.tell()
		return nil, false, nil
	case errors.Is(err, errInTheWay):
		return p.all, false, nil
	case errors.As(err, &over):
		rest = p.leaveOut(over.orders)
		return rest, len(rest) > 0, nil
	case errors.Is(err, ErrKeyTaken), errors.Is(err, stock.ErrSoldOut), errors.Is(err, stock.ErrChanged):
		return p.all, true, nil
	default:
		return p.all, false, err
	}
}

// errInTheWay means that rows of one buyer, a key or an order that is being placed
// elsewhere, kept the batch waiting: that buyer alone has to wait.
var errInTheWay = errors.New("a row of one buyer is in the way of the batch")

// overError means that orders of the batch, by index, are over a limit.
type overError struct{ orders map[int]error }

func (e *overError) Error() string { return fmt.Sprintf("%d orders are over a limit", len(e.orders)) }

// replays answers the wishes whose key is on record and returns the others.
func (s *Service) replays(ctx context.Context, batch []*wish) (rest []*wish, err error) {
	keys := make([]BuyerKey, len(batch))
	for i, w := range batch {
		keys[i] = w.key()
	}
	known, err := s.store.PlacedAll(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("idempotency keys: %w", err)
	}
	for _, w := range batch {
		if first, ok := known[w.key()]; ok {
			w.tell(replayOf(first, w))
			continue
		}
		rest = append(rest, w)
	}
	return rest, nil
}

// replayOf is the answer to a wish whose key was used before.
func replayOf(first Claim, w *wish) outcome {
	if first.Fingerprint != w.print {
		return outcome{err: ErrKeyReused}
	}
	first.Order.Status = Pending // as it was answered
	return outcome{order: first.Order, replayed: true}
}

// book writes a sale, again with a higher fence if the first one is stale.
func (s *Service) book(ctx context.Context, how Strategy, p sale, held leases) error {
	ctx = watch(ctx, p.buyers())
	err := s.bookOnce(ctx, how, p, held)
	if errors.Is(err, stock.ErrStaleFence) {
		if err := s.overtake(ctx, held); err != nil {
			return err
		}
		p.ahead = nil // its transaction is over
		err = s.bookOnce(ctx, how, p, held)
	}
	if err != nil {
		return err
	}
	s.soldOut.forget(p.take.SKU) // here is the order that says so
	s.recent.sold(p.take)
	mark(ctx, StepCommitted)
	if s.onBatch != nil {
		s.onBatch(len(p.orders))
	}
	return nil
}

// bookOnce is the one transaction of a sale. It takes its locks as that of a
// single order does: keys, buyers, the SKU's row, and those of a kind in the
// sequence of their names. So no two of either kind wait for each other in a circle.
//
// Whether a COMMIT without an answer was done, the first order tells for all.
func (s *Service) bookOnce(ctx context.Context, how Strategy, p sale, held leases) error {
	p.take.Fence = held.fence(p.take.SKU)
	orders := p.drafts(0)
	movements := make([]stock.Movement, 0, len(orders))
	for _, o := range orders {
		take := stock.Take{SKU: p.take.SKU, Units: o.Lines[0].Units, Fence: p.take.Fence}
		reserved, err := reservations(o, []stock.Take{take})
		if err != nil {
			return err
		}
		movements = append(movements, reserved...)
	}
	mark(ctx, StepWriting)
	passed := false // of rows that are one buyer's
	rest := func(tx Tx, written int) error {
		passed = false
		if err := tx.ClaimKeys(p.orders...); err != nil {
			return err
		}
		if err := p.limits.lock(tx, orders...); err != nil {
			return err
		}
		passed = true
		if err := tx.Take(how.Take, p.take); err != nil {
			return fmt.Errorf("sku %q: %w", p.take.SKU, err)
		}
		over, err := p.limits.check(tx, orders, written)
		if err != nil {
			return err
		}
		if len(over) > 0 {
			return &overError{over}
		}
		if err := tx.Add(orders[written:]...); err != nil {
			return err
		}
		if err := tx.Record(movements...); err != nil {
			return err
		}
		markWritten(ctx, how.Take, []stock.Take{p.take})
		return held.check(s.commitMargin)
	}
	var err error
	if p.ahead != nil {
		err = p.ahead.end(ctx, rest)
	} else {
		err = s.placing(ctx, orders[0], func(tx Tx) error { return rest(tx, 0) })
	}
	if !passed && (errors.Is(err, ErrInProgress) || errors.Is(err, ErrBusy)) {
		return fmt.Errorf("%w: %w", errInTheWay, err)
	}
	return err
}
