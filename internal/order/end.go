package order

import (
	"context"
	"errors"
	"fmt"
)

// EndRequest is a buyer's wish that an order ends.
type EndRequest struct {
	Buyer   string
	OrderID string

	// Key is the idempotency key; empty for none. Also without one it is safe to
	// ask again: an order ends once.
	Key string
}

// Pay makes the buyer's pending order paid: its units become sold. An order that
// is paid already is returned as it is, so that asking again is safe, whatever
// the first answer was. replayed tells that this request was answered with the
// order before, under the same key, or may have been: it is true also where a
// COMMIT's answer was lost. An error is not remembered.
//
// Errors: ErrNotFound, ErrExpired, ErrState, ErrBusy, ErrUnsettled; with a key
// also ErrKeyInvalid, ErrKeyReused, ErrInProgress.
func (s *Service) Pay(ctx context.Context, r EndRequest) (paid Order, replayed bool, err error) {
	return s.end(ctx, r, Paid)
}

// Cancel makes the buyer's pending order cancelled: its units become available.
// An order that is cancelled already is returned as it is. replayed is
// as Pay has it.
//
// Errors: as those of Pay.
func (s *Service) Cancel(ctx context.Context, r EndRequest) (cancelled Order, replayed bool, err error) {
	return s.end(ctx, r, Cancelled)
}

func (s *Service) end(ctx context.Context, r EndRequest, as Status) (ended Order, replayed bool, err error) {
	if r.Key != "" {
		if err := CheckKey(r.Key); err != nil {
			return Order{}, false, err
		}
	}
	// Before the key: whoever has an order has a name that every database can read.
	o, err := s.Order(ctx, r.Buyer, r.OrderID)
	if err != nil {
		return Order{}, false, err
	}
	if r.Key != "" {
		return s.endOnce(ctx, o, as, r.Key)
	}
	ended, err = s.endAs(ctx, o, as, noKey)
	return ended, false, err
}

// endOnce ends an order under an idempotency key, or replays.
func (s *Service) endOnce(ctx context.Context, o Order, as Status, key string) (ended Order, replayed bool, err error) {
	request := endPrint(o.ID, as)
	if ended, err = s.answered(ctx, o.Buyer, key, request, as); !errors.Is(err, ErrNotFound) {
		return ended, err == nil, err
	}
	taken := false
	ended, err = s.endAs(ctx, o, as, func(tx Tx) error {
		err := tx.ClaimEnd(o, key, request)
		taken = errors.Is(err, ErrKeyTaken)
		return err
	})
	if !taken {
		return ended, false, err
	}
	// By a twin that was faster, or by another request.
	ended, err = s.answered(ctx, o.Buyer, key, request, as)
	if errors.Is(err, ErrNotFound) {
		err = errKeyGone()
	}
	return ended, err == nil, err
}

// endAs ends an order. What claim does is part of the transaction.
func (s *Service) endAs(ctx context.Context, o Order, as Status, claim func(Tx) error) (Order, error) {
	now, _, err := s.settle(ctx, o, as, claim)
	if err == nil && now == Pending {
		// It is due, and the sweeper has not come by yet: who finds it expires it.
		if now, _, err = s.settle(ctx, o, Expired, noKey); err == nil && now == Pending {
			err = fmt.Errorf("%w: the database's clock stepped back", ErrBusy)
		}
	}
	if err == nil && now != as {
		err = &StateError{Status: now}
	}
	if err != nil {
		return Order{}, fmt.Errorf("order %s: %w", o.ID, err)
	}
	o.Status = now
	return o, nil
}

// noKey claims nothing, for requests without an idempotency key.
func noKey(Tx) error { return nil }
