package order

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	// sweepPage is how many due orders are looked up at a time, and how many a sweep
	// fails to expire before it gives up.
	sweepPage = 100

	// sweepWaits is how often a sweep waits for rows in vain before it gives up: each
	// time takes as long as the database lets it wait.
	sweepWaits = 5
)

// ExpireDue expires at most limit orders that are due, the longest due first,
// each in a transaction of its own, and returns how many. Several instances may
// run it at once: the order's row lets one of them credit its units.
//
// An order that cannot be expired does not keep others from it: it is passed
// over, its error returned in the end. So are, behind one that waited in vain for a
// SKU's row, orders of the same SKUs. A sweep that fails to expire too many, or
// waits too often, gives up, and the next one begins behind them. A database that
// does not answer, or the end of ctx, ends the sweep.
func (s *Service) ExpireDue(ctx context.Context, limit int) (expired int, err error) {
	var after Order
	if gaveUp := s.sweptUntil.Swap(nil); gaveUp != nil {
		after = *gaveUp
	}
	var failed []error
	locked := map[string]bool{} // SKUs, those of an order as one
	waits := 0
	for expired < limit {
		page, err := s.store.Due(ctx, after, min(sweepPage, limit-expired))
		if err != nil {
			return expired, errors.Join(append(failed, fmt.Errorf("look for orders that are due: %w", err))...)
		}
		if len(page) == 0 {
			break
		}
		for _, o := range page {
			after = o
			skus := strings.Join(o.skus(), " ")
			if locked[skus] {
				continue
			}
			hadRow := false
			_, moved, err := s.settle(ctx, o, Expired, func(Tx) error {
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
			if ctx.Err() != nil {
				return expired, errors.Join(failed...)
			}
			busy := errors.Is(err, ErrBusy)
			if busy {
				waits++
				locked[skus] = hadRow // or it was the order's own row
			}
			if len(failed) == sweepPage || waits == sweepWaits {
				s.sweptUntil.Store(&o)
				return expired, errors.Join(failed...)
			}
			if busy {
				break // the next look tells whether the database answers
			}
		}
	}
	return expired, errors.Join(failed...)
}
