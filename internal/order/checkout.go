package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"example.com/shop/internal/stock"
)

// checkout sells the request's lines the way the strategy says.
func (s *Service) checkout(ctx context.Context, r Request, how Strategy) (Order, error) {
	for _, line := range r.Lines {
		if !stock.ValidName(line.SKU) {
			return Order{}, fmt.Errorf("sku %.80q: %w", line.SKU, stock.ErrUnknownSKU)
		}
	}
	var placed Order
	committed := false
	err := s.locked(ctx, how, r.skus(), func(leased context.Context, held leases) error {
		if how.ReleaseEarly {
			leased = ctx // or the release would end the transaction
		}
		var err error
		placed, err = s.sell(leased, r, how, held)
		committed = err == nil
		return err
	})
	// A lease that ran out after the commit does not undo the order.
	if committed {
		return placed, nil
	}
	return Order{}, err
}

// locked runs fn under the strategy's lock, if it has one.
func (s *Service) locked(ctx context.Context, how Strategy, skus []string, fn func(ctx context.Context, held leases) error) error {
	if how.Lock == NoLock {
		return fn(ctx, nil)
	}
	mark(ctx, StepLockAsked)
	if !how.ReleaseEarly { // which marks it itself
		defer markReleased(ctx)
	}
	marked := func(ctx context.Context, held leases) error {
		mark(ctx, StepLockHeld)
		return fn(ctx, held)
	}
	if plain := s.plain[how.Lock]; plain != nil {
		return withPlainLocks(ctx, plain, skus, marked)
	}
	return withLeases(ctx, s.lockers[how.Lock], skus, marked)
}

// sell sells the lines, and starts over where the stock has changed since it was
// read, a bounded number of times.
func (s *Service) sell(ctx context.Context, r Request, how Strategy, held leases) (Order, error) {
	for try := 1; ; try++ {
		o, err := s.sellOnce(ctx, r, how, held)
		if !errors.Is(err, stock.ErrChanged) {
			return o, err
		}
		if try == sellTries {
			return Order{}, fmt.Errorf("%w: %d tries: %w", ErrBusy, sellTries, err)
		}
		if err := s.pause(ctx, backOff(try)); err != nil {
			return Order{}, err
		}
	}
}

// sellTries bounds how often a buyer starts over. Each of them but the last is
// another buyer's order, so that in a crowd it takes many.
const sellTries = 100

// backOff is a random time, longer after each try, so that buyers who met do not
// meet again. It soon gets long: each try in vain keeps the others from theirs.
func backOff(try int) time.Duration {
	return 1 + rand.N(min(10*time.Millisecond<<min(try, 16), 2*time.Second))
}

// sellOnce reads the stock, thinks, and writes the order.
func (s *Service) sellOnce(ctx context.Context, r Request, how Strategy, held leases) (Order, error) {
	seen, now, err := s.stock.SKUs(ctx, r.skus())
	if err != nil {
		return Order{}, err
	}
	markRead(ctx, seen)
	for i, line := range r.Lines {
		if how.ReadFirst && seen[i].Level.Available < line.Units {
			return Order{}, errSoldOut(line.SKU)
		}
	}
	if how.Take != stock.ForUpdate { // which reads and thinks in the transaction
		if err := s.think(ctx, r); err != nil {
			return Order{}, err
		}
	}
	o, err := s.draft(r, seen, now)
	if err != nil {
		return Order{}, err
	}
	err = s.write(ctx, r, how, o, seen, held)
	if errors.Is(err, stock.ErrStaleFence) && held != nil {
		if err := s.overtake(ctx, held); err != nil {
			return Order{}, err
		}
		err = s.write(ctx, r, how, o, seen, held)
	}
	if err != nil {
		return Order{}, err
	}
	s.soldOut.forget(o.skus()...) // here is the order that says so
	mark(ctx, StepCommitted)
	return o, nil
}

// draft turns a request into an order at today's prices. seen are the SKUs of its
// lines, read when the database's clock said now.
func (s *Service) draft(r Request, seen []stock.SKU, now time.Time) (Order, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Order{}, fmt.Errorf("new order id: %w", err)
	}
	lines := make([]Line, len(r.Lines))
	for i, line := range r.Lines {
		lines[i] = Line{SKU: line.SKU, Units: line.Units, Price: seen[i].Price}
	}
	sum, err := total(lines)
	if err != nil {
		return Order{}, err
	}
	return Order{
		ID:        id.String(),
		Buyer:     r.Buyer,
		Key:       r.Key,
		Status:    Pending,
		Lines:     lines,
		Total:     sum,
		CreatedAt: now,
		ExpiresAt: now.Add(s.hold),
	}, nil
}

// write is the order's one transaction.
func (s *Service) write(ctx context.Context, r Request, how Strategy, o Order, seen []stock.SKU, held leases) error {
	fences := held
	if how.Take != stock.Fenced {
		fences = nil // of leases that the database does not ask for, none
	}
	wishes := takes(o, seen, fences)
	movements, err := reservations(o, wishes)
	if err != nil {
		return err
	}
	limits := s.limits(seen)
	mark(ctx, StepWriting)
	return s.placing(ctx, o, func(tx Tx) error {
		if err := tx.ClaimKeys(Claim{Order: o, Fingerprint: r.fingerprint()}); err != nil {
			return err
		}
		if err := limits.lock(tx, o); err != nil {
			return err
		}
		for i, wish := range wishes {
			if i == 0 {
				wish.Think = func() error { return s.think(ctx, r) }
			}
			if err := tx.Take(how.Take, wish); err != nil {
				return fmt.Errorf("sku %q: %w", wish.SKU, err)
			}
		}
		over, err := limits.check(tx, []Order{o}, 0)
		if err != nil {
			return err
		}
		if err := over[0]; err != nil {
			return err
		}
		if err := tx.Add(o); err != nil {
			return err
		}
		if err := tx.Record(movements...); err != nil {
			return err
		}
		markWritten(ctx, how.Take, wishes)
		if err := held.check(s.commitMargin); err != nil {
			return err
		}
		if how.ReleaseEarly {
			held.release() //nolint:contextcheck // WRONG: nothing is committed yet. A release does not end with a context.
			markReleased(ctx)
		}
		return nil
	})
}

// takes are the units that an order takes, in the order of the SKUs' names, as
// in all transactions of several lines: two of them never wait for each other.
func takes(o Order, seen []stock.SKU, held leases) []stock.Take {
	takes := make([]stock.Take, len(o.Lines))
	for i, line := range o.Lines {
		takes[i] = stock.Take{SKU: line.SKU, Units: line.Units, Fence: held.fence(line.SKU), Seen: seen[i].Level}
	}
	slices.SortFunc(takes, func(a, b stock.Take) int { return cmp.Compare(a.SKU, b.SKU) })
	return takes
}

// reservations are the movements of an order's units.
func reservations(o Order, takes []stock.Take) ([]stock.Movement, error) {
	movements := make([]stock.Movement, len(takes))
	for i, take := range takes {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("new movement id: %w", err)
		}
		movements[i] = stock.Movement{
			ID:      id.String(),
			SKU:     take.SKU,
			Kind:    stock.Reserve,
			OrderID: o.ID,
			Change:  stock.Level{Available: -take.Units, Reserved: take.Units},
			Fence:   take.Fence,
			At:      o.CreatedAt,
		}
	}
	return movements, nil
}

// think is the pause of a teaching shop.
func (s *Service) think(ctx context.Context, r Request) error {
	if d := cmp.Or(r.Think, s.thinkTime); d != 0 {
		return s.pause(ctx, d)
	}
	return nil
}

// pause waits. Its error is why ctx has ended.
func (s *Service) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
