package order

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/stock"
)

// EndRequest is a buyer's request to pay or cancel an order.
type EndRequest struct {
	Buyer   string
	OrderID string

	// Key is the idempotency key; empty for none. Repeating the request is also safe without one: an order ends once.
	Key string
}

// Ended is an order that has ended as requested.
type Ended struct {
	Order

	// First reports whether this call ended the order.
	First bool

	// Replayed reports whether the same request, with the same key, was answered before, or may have been: it is true
	// also if the answer to a COMMIT was lost.
	Replayed bool
}

// Pay makes the buyer's pending order paid: its units become sold. An order that is paid already is returned as it is,
// so that repeating the request is safe, whatever the first answer was. A refusal leaves the key free.
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
	o, err := s.Order(ctx, r.Buyer, r.OrderID) // a buyer who has an order has a valid name
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

// endReplay returns the replay of a request that ended o, or ErrNotFound if its key is not on record.
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

// endFingerprint is the fingerprint of the request that ends an order. It is plain text, which no hash of an order's
// lines equals, and which the audit reads.
func endFingerprint(id string, as Status) string {
	if as == Paid {
		return "pay:" + id
	}
	return "cancel:" + id
}

// endAs ends an order. claim is called in the same transaction.
func (s *Service) endAs(ctx context.Context, o Order, as Status, claim func(Tx) error) (Ended, error) {
	now, first, err := s.transitionWithRetry(ctx, o, as, claim)
	if err == nil && now == Pending { // it is due, and no sweep has expired it yet
		now, _, err = s.transitionWithRetry(ctx, o, Expired, noKey)
		if err == nil && now == Pending {
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
	transitionRetries = 5 // after a COMMIT whose answer was lost
	transitionBackOff = 50 * time.Millisecond
	transitionTimeout = 10 * time.Second // of all retries
)

// transitionWithRetry makes a transition and returns the order's status after it, and whether this call ended the
// order. After a COMMIT whose answer was lost it makes the same transition again: the order's row stays locked until
// the first transaction has ended, and then has its outcome. (An order that another request ended in the same way in
// between counts as ended by this call.)
func (s *Service) transitionWithRetry(ctx context.Context, o Order, to Status, claim func(Tx) error) (now Status, moved bool, err error) {
	now, moved, err = s.transition(ctx, o, to, claim)
	if !errors.Is(err, ErrUnknownOutcome) {
		return now, moved, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), transitionTimeout)
	defer cancel()
	mayHaveMoved := moved
	for try := range transitionRetries {
		if Pause(ctx, transitionBackOff<<try) != nil {
			break
		}
		now, moved, err = s.transition(ctx, o, to, claim)
		mayHaveMoved = mayHaveMoved || moved
		if err == nil {
			return now, mayHaveMoved && now == to, nil
		}
	}
	// Not wrapped: an ErrBusy of the last try would claim that nothing was changed.
	return now, false, ErrUnknownOutcome.with("%v", err)
}

// transition is one transaction: it ends the order if the order's row allows that, claims the key, moves the units and
// records the movements. It returns the order's status, and whether this transaction ended the order, or did if it was
// committed, where its outcome is unknown. The key is claimed also if the order had ended in that way before; it may be
// taken then.
//
// The key comes before the units, as it does when an order is placed: two transactions never wait for each other.
func (s *Service) transition(ctx context.Context, o Order, to Status, claim func(Tx) error) (now Status, moved bool, err error) {
	kind := stock.Release
	if to == Paid {
		kind = stock.Sell
	}
	movements := o.Movements(kind, nil, time.Now().UTC())
	err = s.Store.InTx(ctx, func(tx Tx) (err error) {
		now, moved, err = tx.Move(o.ID, to)
		if err != nil || now != to {
			return err
		}
		err = claim(tx)
		if !moved && errors.Is(err, ErrKeyTaken) {
			return nil // end answers it
		}
		if err != nil || !moved {
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

// Pause waits for d. If ctx ends first, the error is its cause.
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
	sweepPage     = 256 // orders that are looked up at a time, and expired in one transaction
	sweepFailures = 100 // orders that a sweep fails to expire before it gives up

	// dueTimeout is for one look at the database. An instance that cannot reach it must fail, for another to sweep.
	dueTimeout = 10 * time.Second

	// sweepTimeouts is how many waits for a locked row time out before a sweep gives up: each takes as long as the
	// database's lock wait timeout.
	sweepTimeouts = 5
)

// ExpireDue expires at most limit orders that are due, of all SKUs, the longest due first, and returns how many. Several
// instances may run it at once: only the one that changes an order's row releases its units.
//
// The orders of a page are expired in one transaction; if that fails, each in its own. An order that cannot be expired
// does not keep others from it: it is skipped, and its error returned in the end. After a timeout on a SKU's locked
// row, orders of the same SKUs are also skipped. A sweep that fails to expire too many, or times out too often, gives
// up, and the next one begins behind them. A database that does not answer, or the end of ctx, ends the sweep.
func (s *Service) ExpireDue(ctx context.Context, limit int) (expired int, err error) {
	var after Order
	if gaveUp := s.sweep.Swap(nil); gaveUp != nil {
		after = *gaveUp
	}
	var failed []error
	locked := map[string]bool{} // by the names of an order's SKUs: one of their rows stayed locked
	timeouts := 0
	for expired < limit {
		looking, cancel := context.WithTimeout(ctx, dueTimeout)
		page, err := s.Store.Due(looking, after, min(sweepPage, limit-expired))
		cancel()
		if err != nil {
			return expired, errors.Join(append(failed, fmt.Errorf("look for orders that are due: %w", err))...)
		}
		if after.ID == "" && s.OnLag != nil {
			s.OnLag(lag(page))
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1]
		page = slices.DeleteFunc(page, func(o Order) bool { return locked[o.skuNames()] })
		n, err := s.expireTogether(ctx, page)
		if err == nil {
			expired += n
			continue
		}
		for _, o := range page {
			lockedOrder := false // if so, a timeout is one of a SKU's row
			_, moved, err := s.transitionWithRetry(ctx, o, Expired, func(Tx) error {
				lockedOrder = true
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
				timeouts++
				locked[o.skuNames()] = lockedOrder
			}
			if ctx.Err() != nil || len(failed) == sweepFailures || timeouts == sweepTimeouts {
				s.sweep.Store(&o)
				return expired, errors.Join(failed...)
			}
			if busy { // the next Due finds out whether the database answers
				after = o
				break
			}
		}
	}
	return expired, errors.Join(failed...)
}

// lag is how long the first of the orders has been due.
func lag(due []Order) time.Duration {
	if len(due) == 0 {
		return 0
	}
	return max(time.Since(due[0].ExpiresAt), 0)
}

func (o Order) skuNames() string { return strings.Join(slices.Sorted(slices.Values(o.SKUs())), " ") }

// expireTogether expires the orders in one transaction and returns how many, if that succeeds. It leaves out orders that
// are no longer pending, and those whose rows another transaction has locked, such as a payment.
func (s *Service) expireTogether(ctx context.Context, due []Order) (expired int, err error) {
	err = s.Store.InTx(ctx, func(tx Tx) error {
		moved, err := tx.Expire(due...)
		expired = len(moved)
		if err != nil {
			return err
		}
		units := map[string]int64{}
		var ledger []stock.Movement
		for _, o := range moved {
			ledger = append(ledger, o.Movements(stock.Release, nil, time.Now().UTC())...)
			for _, line := range o.Lines {
				units[line.SKU] += line.Units
			}
		}
		for _, sku := range slices.Sorted(maps.Keys(units)) {
			if err := tx.Settle(stock.Release, sku, units[sku]); err != nil {
				return err
			}
		}
		return tx.Record(ledger...)
	})
	return expired, err
}
