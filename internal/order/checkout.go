package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/stock"
)

// checkout sells the request's line the way the strategy says.
func (s *Service) checkout(ctx context.Context, r Request, how Strategy) (Order, error) {
	line := r.Lines[0]
	if !stock.ValidName(line.SKU) {
		return Order{}, fmt.Errorf("sku %.80q: %w", line.SKU, stock.ErrUnknownSKU)
	}
	if how.Lock == NoLock {
		return s.sell(ctx, r, how, nil)
	}
	var placed Order
	committed := false
	err := s.lockers[how.Lock].Do(ctx, "sku:"+line.SKU, func(ctx context.Context, lease *lock.Lease) error {
		var err error
		placed, err = s.sell(ctx, r, how, lease)
		committed = err == nil
		return err
	})
	// A lease that ran out after the commit does not undo the order.
	if committed {
		return placed, nil
	}
	return Order{}, err
}

// sell reads the stock, thinks, and writes the order. The lease is nil for a
// strategy without a lock.
func (s *Service) sell(ctx context.Context, r Request, how Strategy, lease *lock.Lease) (Order, error) {
	line := r.Lines[0]
	sku, err := s.stock.SKU(ctx, line.SKU)
	if err != nil {
		return Order{}, fmt.Errorf("sku %q: %w", line.SKU, err)
	}
	if how.ReadFirst && sku.Level.Available < line.Units {
		return Order{}, fmt.Errorf("sku %q: %w", line.SKU, stock.ErrSoldOut)
	}
	if err := s.pause(ctx, r.Think); err != nil {
		return Order{}, err
	}
	o, err := s.draft(r, sku)
	if err != nil {
		return Order{}, err
	}
	err = s.write(ctx, r, how, o, sku.Level, lease)
	if errors.Is(err, stock.ErrStaleFence) && lease != nil {
		if err := s.overtake(ctx, sku.Name, lease); err != nil {
			return Order{}, err
		}
		err = s.write(ctx, r, how, o, sku.Level, lease)
	}
	if err != nil {
		return Order{}, err
	}
	return o, nil
}

// write is the order's one transaction.
func (s *Service) write(ctx context.Context, r Request, how Strategy, o Order, seen stock.Level, lease *lock.Lease) error {
	var fence int64
	if lease != nil {
		fence = lease.Fence()
	}
	line := o.Lines[0]
	return s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.ClaimKey(o, r.fingerprint()); err != nil {
			return err
		}
		take := stock.Take{SKU: line.SKU, Units: line.Units, Fence: fence, Seen: seen}
		if err := tx.Take(how.Take, take); err != nil {
			return fmt.Errorf("sku %q: %w", line.SKU, err)
		}
		if err := tx.Add(o); err != nil {
			return err
		}
		if err := s.record(tx, o, fence); err != nil {
			return err
		}
		if lease != nil && lease.Remaining() < s.commitMargin {
			return fmt.Errorf("sku %q: %w", line.SKU, ErrTooLate)
		}
		return nil
	})
}

// record appends the movement of an order's line to the ledger.
func (s *Service) record(tx Tx, o Order, fence int64) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("new movement id: %w", err)
	}
	line := o.Lines[0]
	return tx.Record(stock.Movement{
		ID:      id.String(),
		SKU:     line.SKU,
		Kind:    stock.Reserve,
		OrderID: o.ID,
		Change:  stock.Level{Available: -line.Units, Reserved: line.Units},
		Fence:   fence,
		At:      o.CreatedAt,
	})
}

// overtake answers a refused fence. If the lease is still ours, the database
// has seen a higher number than the lock's store remembers (its clock stepped
// back after it lost its memory): the lease takes a number above that one.
func (s *Service) overtake(ctx context.Context, name string, lease *lock.Lease) error {
	sku, err := s.stock.SKU(ctx, name)
	if err != nil {
		return fmt.Errorf("sku %q: %w", name, err)
	}
	err = lease.Raise(ctx, sku.Fence)
	if err != nil && !errors.Is(err, lock.ErrLost) {
		// Whatever the lock's store said, it gave no number: nothing was written, asking again is safe.
		return fmt.Errorf("sku %q: %w: %w", name, lock.ErrNoAnswer, err)
	}
	return err
}

// draft turns a request into an order at today's price.
func (s *Service) draft(r Request, sku stock.SKU) (Order, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Order{}, fmt.Errorf("new order id: %w", err)
	}
	line := Line{SKU: sku.Name, Units: r.Lines[0].Units, Price: sku.Price}
	return Order{
		ID:        id.String(),
		Buyer:     r.Buyer,
		Key:       r.Key,
		Status:    Pending,
		Lines:     []Line{line},
		Total:     line.Price.Times(line.Units),
		CreatedAt: s.now().UTC().Truncate(time.Microsecond),
	}, nil
}

// pause is the think time of a teaching shop.
func (s *Service) pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		d = s.think
	}
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
