package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// EndRequest is a buyer's request to pay or cancel an order.
type EndRequest struct {
	Buyer   string
	OrderID string

	// Key is the idempotency key; empty for none. Even without a key, repeating the request is safe: an order ends once.
	Key string
}

// Ended is an order that has ended as requested.
type Ended struct {
	Order
	First bool // this call ended it

	// Replayed reports whether the same request, with the same key, was answered before. It is also true if the request
	// may have been answered before: the answer to a COMMIT was lost.
	Replayed bool
}

// Pay makes the buyer's pending order paid, without a payment, as in a demonstration: its units become sold. If the
// order is already paid, Pay returns it as it is, so that repeating the request is safe. A refusal leaves the key free.
//
// Errors: ErrNotFound, ErrExpired, ErrState, ErrBusy, ErrUnknownOutcome; with a key also ErrKeyInvalid, ErrKeyReused.
func (s *Service) Pay(ctx context.Context, r EndRequest) (Ended, error) {
	return s.end(ctx, r, Paid)
}

// Cancel makes the buyer's pending order cancelled: its units become available. If the order is already cancelled,
// Cancel returns it as it is. Errors: as for Pay.
func (s *Service) Cancel(ctx context.Context, r EndRequest) (Ended, error) {
	return s.end(ctx, r, Cancelled)
}

// Ending is a request to end an order.
type Ending struct {
	OrderID          string
	Buyer            string // empty for any buyer
	As               Status // Paid, Cancelled or Expired
	Key, Fingerprint string // of the request; empty for none
	NoWait           bool   // tries a row that another transaction has locked once more at most

	// Payment is the provider's payment, if the order is to be paid. Without an ID, the order is paid without a payment.
	Payment Payment
}

// Outcome is what came of an Ending.
type Outcome struct {
	Order   Order   // as it was read, with the status that it has now; zero if it was not read
	Due     bool    // the order is pending, and due by the database's clock: it can only expire
	First   bool    // this call ended the order or, with an ErrUnknownOutcome, may have ended it
	Payment Payment // with its Refusal; if it was recorded before, as it was recorded
	Err     error   // also nil if the order does not end as requested: the status, or Payment.Refusal, says why
}

// Ender ends orders. *batch.Seller implements it.
type Ender interface {
	// End returns the outcome of each Ending. A pending order ends as Expired if it is due by the database's clock, and as
	// Paid or Cancelled if it is not due. Its units leave reserved in the same transaction. The key is claimed even if
	// the order had already ended as requested.
	//
	// The same transaction records a payment, with its Refusal, whether or not the payment pays the order.
	//
	// Errors: ErrNotFound if the buyer has no such order, ErrKeyTaken if the key is on record, ErrPaymentReused, ErrBusy,
	// ErrUnknownOutcome, ErrNotReserved. With NoWait, an order whose row is locked stays pending, without an error;
	// if another row stays locked, ErrLocked.
	End(ctx context.Context, endings ...Ending) []Outcome
}

// end ends an order or replays its end. The idempotency key is optional.
func (s *Service) end(ctx context.Context, r EndRequest, as Status) (Ended, error) {
	e := Ending{
		OrderID: r.OrderID, Buyer: r.Buyer, As: as, Key: r.Key,
		// The fingerprint is plain text, which the audit reads. No hash of an order's lines equals it.
		Fingerprint: map[Status]string{Paid: "pay:", Cancelled: "cancel:"}[as] + r.OrderID,
	}
	if e.Key != "" {
		if err := CheckKey(e.Key); err != nil {
			return Ended{}, err
		}
		if replay, err := s.endReplay(ctx, e); !errors.Is(err, ErrNotFound) {
			return replay, err
		}
	}
	ended, err := s.endAs(ctx, e)
	if !errors.Is(err, ErrKeyTaken) {
		return ended, err
	}
	// Another request took the key, or this request did, by a COMMIT whose answer was lost.
	replay, err := s.endReplay(ctx, e)
	if errors.Is(err, ErrNotFound) {
		err = ErrBusy.with("the idempotency key was purged just now")
	}
	replay.First = ended.First
	return replay, err
}

// endReplay returns the replay of a request that ended an order, or ErrNotFound if its key is not on record.
func (s *Service) endReplay(ctx context.Context, e Ending) (Ended, error) {
	used, err := usedKey(ctx, s.Store, e.Buyer, e.Key)
	if err != nil {
		return Ended{}, err
	}
	if used.Fingerprint != e.Fingerprint {
		return Ended{}, ErrKeyReused
	}
	used.Order.Status = e.As
	return Ended{Order: used.Order, Replayed: true}, nil
}

func (s *Service) endAs(ctx context.Context, e Ending) (Ended, error) {
	o := s.endWithRetry(ctx, e)
	first, payment, err := o.First, o.Payment, o.Err
	// If no sweep has expired the order yet, it expires now. A repeated payment keeps the first reason of its refusal.
	if err == nil && o.Due && (payment.Refusal == "" || payment.Refusal == ErrExpired.Code) {
		o = s.endWithRetry(ctx, Ending{OrderID: e.OrderID, As: Expired})
		err = o.Err
	}
	switch {
	case err != nil:
	case payment.Refusal != "":
		err = payment.refused(o.Order)
	case o.Order.Status == Pending:
		err = ErrBusy.with("the database's clock stepped back")
	case o.Order.Status != e.As:
		err = hasEnded(o.Order.Status)
	}
	if err != nil {
		return Ended{First: first}, fmt.Errorf("order %s: %w", e.OrderID, err)
	}
	return Ended{Order: o.Order, First: first}, nil
}

// hasEnded returns the error for an order that has not ended as requested.
func hasEnded(as Status) error {
	if as == Expired {
		return &Error{Code: ErrExpired.Code, Status: as,
			Text: "it was not paid in time and has expired, its units are for sale again: place a new order"}
	}
	return &Error{Code: ErrState.Code, Status: as, Text: fmt.Sprintf("it is %s already", as)}
}

const (
	endRetries = 5 // after a lost answer to a COMMIT
	endBackOff = 50 * time.Millisecond
	endTimeout = 10 * time.Second // of all retries
)

// endWithRetry ends an order and returns the outcome. If the answer to a COMMIT is lost, it tries again: the order's
// row stays locked until the first transaction has ended, and then shows its outcome. (If another request has ended the
// order in the same way meanwhile, the order counts as ended by this call.)
func (s *Service) endWithRetry(ctx context.Context, e Ending) Outcome {
	o := s.Ends.End(ctx, e)[0]
	if !errors.Is(o.Err, ErrUnknownOutcome) {
		return o
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	mayBeFirst := o.First
	for try := range endRetries {
		if Pause(ctx, endBackOff<<try) != nil {
			break
		}
		o = s.Ends.End(ctx, e)[0]
		mayBeFirst = mayBeFirst || o.First
		if o.Err == nil || errors.Is(o.Err, ErrKeyTaken) || errors.Is(o.Err, ErrPaymentReused) {
			o.First = mayBeFirst && o.Order.Status == e.As
			return o
		}
	}
	// Not wrapped: an ErrBusy of the last try would claim that nothing was changed.
	return Outcome{Err: ErrUnknownOutcome.with("%v", o.Err)}
}

const (
	sweepPage = 64 // orders that one transaction expires

	// dueTimeout limits one look at the database. An instance that cannot reach it must fail, so that another can sweep.
	dueTimeout = 10 * time.Second
)

// ExpireDue expires at most limit due orders of all SKUs, those first that have been due for longest, and returns their
// number. Several instances may run it at once: the instance that changes an order's row releases the units.
//
// One transaction expires the orders of a page. An order that cannot be expired does not delay the others: the error
// counts such orders and names the first. An order whose row is locked, as by a payment, is left to the next sweep. A
// sweep ends if the database is too busy for a whole page or does not answer, or if ctx ends. Locked rows do not end
// it.
func (s *Service) ExpireDue(ctx context.Context, limit int) (expired int, err error) {
	var after Order
	failed := 0
	for expired < limit {
		looking, cancel := context.WithTimeout(ctx, dueTimeout)
		page, unread := s.Store.Due(looking, after, min(limit-expired, sweepPage))
		cancel()
		if unread != nil {
			return expired, errors.Join(err, fmt.Errorf("look for orders that are due: %w", unread))
		}
		if after.ID == "" && s.OnLag != nil {
			lag := time.Duration(0)
			if len(page) > 0 {
				lag = max(time.Since(page[0].ExpiresAt), 0)
			}
			s.OnLag(lag)
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1]
		endings := Map(page, func(o Order) Ending { return Ending{OrderID: o.ID, As: Expired, NoWait: true} })
		busy := 0
		for i, o := range s.Ends.End(ctx, endings...) {
			switch {
			case o.Err != nil:
				failed++
				err = cmp.Or(err, fmt.Errorf("expire order %s: %w", page[i].ID, o.Err))
			case o.First:
				expired++
			}
			if errors.Is(o.Err, ErrBusy) && !errors.Is(o.Err, ErrLocked) {
				busy++
			}
		}
		if ctx.Err() != nil || busy == len(page) {
			break
		}
	}
	if failed > 1 {
		err = fmt.Errorf("%d orders; the first: %w", failed, err)
	}
	return expired, err
}
