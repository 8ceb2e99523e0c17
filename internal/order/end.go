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

// Ended is an order that was asked to end, and has ended so.
type Ended struct {
	Order

	// First tells that it was this call that ended it. One that had ended so before
	// is returned as it is, whatever key it is asked with.
	First bool

	// Replayed tells that this request was answered with the order before, under the
	// same key, or may have been: it is true also where a COMMIT's answer was lost, of
	// a call that is First.
	Replayed bool
}

// Pay makes the buyer's pending order paid: its units become sold. An order that
// is paid already is returned as it is, so that asking again is safe, whatever
// the first answer was. An error is not remembered.
//
// Errors: ErrNotFound, ErrExpired, ErrState, ErrBusy, ErrUnsettled; with a key
// also ErrKeyInvalid, ErrKeyReused, ErrInProgress.
func (s *Service) Pay(ctx context.Context, r EndRequest) (Ended, error) {
	return s.end(ctx, r, Paid)
}

// Cancel makes the buyer's pending order cancelled: its units become available.
// An order that is cancelled already is returned as it is.
//
// Errors: as those of Pay.
func (s *Service) Cancel(ctx context.Context, r EndRequest) (Ended, error) {
	return s.end(ctx, r, Cancelled)
}

func (s *Service) end(ctx context.Context, r EndRequest, as Status) (Ended, error) {
	if r.Key != "" {
		if err := CheckKey(r.Key); err != nil {
			return Ended{}, err
		}
	}
	// Before the key: whoever has an order has a name that every database can read.
	o, err := s.Order(ctx, r.Buyer, r.OrderID)
	if err != nil {
		return Ended{}, err
	}
	if r.Key != "" {
		return s.endOnce(ctx, o, as, r.Key)
	}
	return s.endAs(ctx, o, as, noKey)
}

// endOnce ends an order under an idempotency key, or replays.
func (s *Service) endOnce(ctx context.Context, o Order, as Status, key string) (Ended, error) {
	request := endPrint(o.ID, as)
	replay, err := s.answered(ctx, o.Buyer, key, request, as)
	if err == nil {
		return Ended{Order: replay, Replayed: true}, nil
	}
	if !errors.Is(err, ErrNotFound) {
		return Ended{}, err
	}
	taken := false
	ended, err := s.endAs(ctx, o, as, func(tx Tx) error {
		err := tx.ClaimEnd(o, key, request)
		taken = errors.Is(err, ErrKeyTaken)
		return err
	})
	if !taken {
		return ended, err
	}
	// By a twin that was faster, by another request, or by a COMMIT without an answer.
	replay, err = s.answered(ctx, o.Buyer, key, request, as)
	if errors.Is(err, ErrNotFound) {
		err = errKeyGone()
	}
	if err != nil {
		return Ended{}, err
	}
	return Ended{Order: replay, First: ended.First, Replayed: true}, nil
}

// endAs ends an order. What claim does is part of the transaction.
func (s *Service) endAs(ctx context.Context, o Order, as Status, claim func(Tx) error) (Ended, error) {
	now, first, err := s.settle(ctx, o, as, claim)
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
		return Ended{}, fmt.Errorf("order %s: %w", o.ID, err)
	}
	o.Status = now
	return Ended{Order: o, First: first}, nil
}

// noKey claims nothing, for requests without an idempotency key.
func noKey(Tx) error { return nil }
