package order

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/stock"
)

// EndRequest asks for an order to end.
type EndRequest struct {
	Buyer   string
	OrderID string

	// Key is the idempotency key; empty for none. Also without one it is safe to ask again: an order ends once.
	Key string
}

// Ended is an order that was asked to end, and has ended so.
type Ended struct {
	Order

	// First says that it was this call that ended it.
	First bool

	// Replayed says that the same request was answered with the order before, under the same key, or may have been: it
	// is true also where a COMMIT's answer was lost.
	Replayed bool
}

// Pay makes the buyer's pending order paid: its units become sold. An order that is paid already is returned as it is,
// so that asking again is safe, whatever the first answer was. A refusal leaves the key free.
//
// Errors: ErrNotFound, ErrExpired, ErrState, ErrBusy, ErrUnknownOutcome; with a key also ErrKeyInvalid, ErrKeyReused,
// ErrInProgress.
func (s *Service) Pay(ctx context.Context, r EndRequest) (Ended, error) {
	return s.end(ctx, r, Paid)
}

// Cancel makes the buyer's pending order cancelled: its units become available. An order that is cancelled already is
// returned as it is. Errors: as those of Pay.
func (s *Service) Cancel(ctx context.Context, r EndRequest) (Ended, error) {
	return s.end(ctx, r, Cancelled)
}

// end ends an order, under an idempotency key if there is one, or replays.
func (s *Service) end(ctx context.Context, r EndRequest, as Status) (Ended, error) {
	if r.Key != "" {
		if err := CheckKey(r.Key); err != nil {
			return Ended{}, err
		}
	}
	o, err := s.Order(ctx, r.Buyer, r.OrderID) // before the key: a buyer with an order has a valid name
	if err != nil {
		return Ended{}, err
	}
	if r.Key == "" {
		return s.endAs(ctx, o, as, noKey)
	}
	request := endFingerprint(o.ID, as)
	if replay, err := s.endReplay(ctx, o, r.Key, request, as); !errors.Is(err, ErrNotFound) {
		return replay, err
	}
	taken := false
	ended, err := s.endAs(ctx, o, as, func(tx Tx) error {
		err := tx.ClaimEnd(o, r.Key, request)
		taken = errors.Is(err, ErrKeyTaken)
		return err
	})
	if !taken {
		return ended, err
	}
	// Another request took the key, or this one did, by a COMMIT whose answer was lost.
	replay, err := s.endReplay(ctx, o, r.Key, request, as)
	if errors.Is(err, ErrNotFound) {
		err = ErrBusy.with("the idempotency key was purged just now")
	}
	replay.First = ended.First
	return replay, err
}

func (s *Service) endReplay(ctx context.Context, o Order, key, request string, as Status) (Ended, error) {
	claim, err := claimOf(ctx, s.Store, o.Buyer, key)
	if err != nil {
		return Ended{}, err
	}
	if claim.Fingerprint != request {
		return Ended{}, ErrKeyReused
	}
	claim.Order.Status = as
	return Ended{Order: claim.Order, Replayed: true}, nil
}

// endFingerprint is the fingerprint of the request that ends an order. It is no hash, unlike that of a Request, and so
// cannot be taken for one; the audit reads it.
func endFingerprint(id string, as Status) string {
	if as == Paid {
		return "pay:" + id
	}
	return "cancel:" + id
}

// endAs ends an order. What claim does is part of the transaction.
func (s *Service) endAs(ctx context.Context, o Order, as Status, claim func(Tx) error) (Ended, error) {
	now, first, err := s.transitSurely(ctx, o, as, claim)
	if err == nil && now == Pending {
		// It is due, and no sweep has expired it yet.
		if now, _, err = s.transitSurely(ctx, o, Expired, noKey); err == nil && now == Pending {
			err = ErrBusy.with("the database's clock stepped back")
		}
	}
	switch {
	case err != nil || now == as:
	case now == Expired:
		err = &Error{Code: ErrExpired.Code, Status: now,
			Text: "it was not paid in time and has expired, its units are for sale again: place a new order"}
	default:
		err = &Error{Code: ErrState.Code, Status: now, Text: fmt.Sprintf("it is %s already", now)}
	}
	if err != nil {
		return Ended{}, fmt.Errorf("order %s: %w", o.ID, err)
	}
	o.Status = now
	return Ended{Order: o, First: first}, nil
}

// noKey claims nothing, for requests without an idempotency key.
func noKey(Tx) error { return nil }

const (
	transitTries = 5 // of a transition whose COMMIT was not answered
	transitPause = 50 * time.Millisecond
	transitBound = 10 * time.Second // for all tries after the first
)

// transitSurely makes a transition and returns the status in which that left the order, and whether it was this call
// that ended it. A COMMIT without an answer is asked for by the same transition again: the order's row is locked until
// the first transaction has ended, and then tells. (An order that another request ended in the same way in between
// counts as ended by this one.)
func (s *Service) transitSurely(ctx context.Context, o Order, to Status, claim func(Tx) error) (now Status, moved bool, err error) {
	now, moved, err = s.transit(ctx, o, to, claim)
	if errors.Is(err, ErrUnknownOutcome) {
		did := moved // or would have
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), transitBound)
		defer cancel()
		for try := range transitTries {
			if Pause(bound, transitPause<<try) != nil {
				break
			}
			if now, moved, err = s.transit(bound, o, to, claim); err == nil {
				break
			}
			did = did || moved
		}
		moved = (did || moved) && now == to
		if err != nil { // not wrapped: an ErrBusy of the last try would say that nothing was changed
			err = ErrUnknownOutcome.with("%v", err)
		}
	}
	return now, moved && err == nil, err
}

// transit is one transaction: the order's row decides whether it may end, then the key is claimed, its units move and
// the ledger says so. It returns the order's status, and whether this transaction brought it there, or would have,
// where its outcome is unknown. The key is claimed also where the order has ended in that way before, and may be taken
// then.
//
// Units come after the key because an order is placed in that sequence, too: of two transactions one waits for the
// other, never each.
func (s *Service) transit(ctx context.Context, o Order, to Status, claim func(Tx) error) (now Status, moved bool, err error) {
	kind := stock.Release
	if to == Paid {
		kind = stock.Sell
	}
	movements, err := o.Movements(kind, nil, s.now().UTC())
	if err != nil {
		return "", false, err
	}
	err = s.Store.InTx(ctx, nil, func(tx Tx) error {
		if now, moved, err = tx.Move(o.ID, to); err != nil || now != to {
			return err
		}
		if err := claim(tx); !moved && errors.Is(err, ErrKeyTaken) {
			return nil // to end, that is an answer
		} else if err != nil || !moved {
			return err
		}
		for _, line := range o.Sorted() {
			if err := tx.Settle(kind, line.SKU, line.Units); err != nil {
				return err
			}
		}
		return tx.Record(movements...)
	})
	return now, moved && (err == nil || errors.Is(err, ErrUnknownOutcome)), err
}

// Pause waits, unless d is 0. Its error is why ctx has ended.
func Pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

const (
	// sweepPage is how many due orders are looked up at a time, and how many a sweep fails to expire before it gives
	// up.
	sweepPage = 100

	// sweepWaits is how often a sweep waits for rows in vain before it gives up: each time takes as long as the
	// database lets it wait.
	sweepWaits = 5
)

// ExpireDue expires at most limit orders that are due, the longest due first, each in a transaction of its own, and
// returns how many. Several instances may run it at once: the order's row lets one of them credit its units.
//
// An order that cannot be expired does not keep others from it: it is skipped, and its error returned in the end. After
// one that waited in vain for a SKU's row, orders of the same SKUs are skipped, too. A sweep that fails to expire too
// many, or waits too often, gives up, and the next one begins behind them. A database that does not answer, or the end
// of ctx, ends the sweep.
func (s *Service) ExpireDue(ctx context.Context, limit int) (expired int, err error) {
	var after Order
	if gaveUp := s.sweep.Swap(nil); gaveUp != nil {
		after = *gaveUp
	}
	var failed []error
	locked := map[string]bool{} // SKUs, those of an order as one
	waits := 0
	for expired < limit {
		page, err := s.Store.Due(ctx, after, min(sweepPage, limit-expired))
		if err != nil {
			return expired, errors.Join(append(failed, fmt.Errorf("look for orders that are due: %w", err))...)
		}
		if len(page) == 0 {
			break
		}
		for _, o := range page {
			after = o
			skus := strings.Join(slices.Sorted(slices.Values(o.SKUs())), " ")
			if locked[skus] {
				continue
			}
			hadRow := false // of the order; then it was a SKU's row that could not be had
			_, moved, err := s.transitSurely(ctx, o, Expired, func(Tx) error {
				hadRow = true
				return nil
			})
			if moved {
				expired++
			}
			if err == nil {
				continue
			}
			failed = append(failed, fmt.Errorf("expire order %s: %w", o.ID, err))
			busy := errors.Is(err, ErrBusy)
			if busy {
				waits++
				locked[skus] = hadRow
			}
			if ctx.Err() != nil || len(failed) == sweepPage || waits == sweepWaits {
				s.sweep.Store(&o)
				return expired, errors.Join(failed...)
			}
			if busy {
				break // the next look tells whether the database answers
			}
		}
	}
	return expired, errors.Join(failed...)
}
