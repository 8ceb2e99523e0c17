package order

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/shop/internal/lock"
)

const (
	// batchLimit is how many buyers are served in one transaction. All of them wait
	// for all: a few hundred share what a commit costs well enough.
	batchLimit = 256

	// batchBound ends a batch none of whose buyers sets a limit.
	batchBound = 30 * time.Second
)

// placeInLane takes an order of one SKU by way of its lane.
//
// A buyer whose ctx ends in the line leaves it, and nothing was changed. One who
// is being served gets the outcome: the others must not hang on it.
func (s *Service) placeInLane(ctx context.Context, r Request, how Strategy) (placed Order, replayed bool, err error) {
	at := laneKey{strategy: how.Name, sku: r.Lines[0].SKU}
	w := &wish{ctx: ctx, request: r, print: r.fingerprint(), answer: make(chan outcome, 1)}
	mark(ctx, StepLockAsked)
	if err := s.lanes.join(at, w, func() { s.lead(at, how) }); err != nil { //nolint:contextcheck // the leader serves others, too
		return Order{}, false, err
	}
	var told outcome
	select {
	case told = <-w.answer:
	case <-ctx.Done():
		if s.lanes.leave(at, w) {
			return Order{}, false, gone(ctx, at.sku)
		}
		told = <-w.answer
	}
	if told.alone {
		return s.placeAlone(ctx, r, how)
	}
	return told.order, told.replayed, told.err
}

// gone is the error of a buyer whose ctx ended in the line.
func gone(ctx context.Context, sku string) error {
	return fmt.Errorf("lane of sku %q: %w: %w: %w", sku, lock.ErrNotAcquired, ctx.Err(), context.Cause(ctx))
}

// lead serves a lane until nobody stands in it. The first buyer is served at once;
// the next batch is who has come meanwhile. Between two batches the lease is given
// back, so that carts and other instances, who wait for the same one, get their turn.
//
// A herd that comes for a SKU with nothing left makes one batch: what its leader
// learns from that is told to all who stand in line behind it.
func (s *Service) lead(at laneKey, how Strategy) {
	seen := s.soldOut.begin(at.sku)
	defer s.soldOut.end(at.sku, seen)
	without := 0 // so many batches have no head start
	for first := s.lanes.head(at); first != nil; first = s.lanes.head(at) {
		if s.refuseKnown(at, how) {
			continue
		}
		served := false
		ctx := onBehalf{s.lanes.ctx, first.ctx}
		var ahead *headStart
		if without--; without < 0 {
			_ = s.guard(at.sku, func() error { // whatever comes of it, it can be done without
				ahead = s.startAhead(ctx, at)
				return nil
			})
		}
		err := s.guard(at.sku, func() error {
			return s.lockers[how.Lock].Do(ctx, lockKey(at.sku), func(ctx context.Context, lease *lock.Lease) error {
				served = true
				s.serve(ctx, at, how, leases{at.sku: lease}, seen, ahead)
				return nil
			})
		})
		ahead.giveUp()
		// What becomes of the lease after a batch does not undo its answers.
		if !served {
			s.turnAway(at, err)
		} else {
			_ = s.guard(at.sku, func() error { // whatever comes of it, the next batch is served
				s.learn(seen)
				return nil
			})
		}
		if ahead.over() {
			without = withoutAhead
		}
	}
}

// onBehalf is a context with the values of a buyer's that does not end with it.
// What is done for several is in the spans of the first; a Trace, of which each
// buyer has its own, comes with watch.
type onBehalf struct {
	context.Context                 //nolint:containedctx // it is one itself
	buyer           context.Context //nolint:containedctx // for its values
}

func (c onBehalf) Value(key any) any {
	if own := c.Context.Value(key); own != nil {
		return own
	}
	return c.buyer.Value(key)
}

// serve sells to the head of a lane.
func (s *Service) serve(ctx context.Context, at laneKey, how Strategy, held leases, seen *look, ahead *headStart) {
	batch := present(at.sku, s.lanes.next(at, batchLimit))
	if len(batch) == 0 {
		return
	}
	var rest []*wish
	err := s.guard(at.sku, func() (err error) {
		ctx, cancel := patience(ctx, batch)
		defer cancel()
		mark(watch(ctx, batch), StepLockHeld)
		rest, err = s.sellTo(ctx, at.sku, how, batch, held, seen, ahead)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return err
	})
	if err != nil {
		refuseRest(batch, err)
		return
	}
	for _, w := range rest {
		w.tell(outcome{alone: true})
	}
}

// turnAway tells all who stand in a lane that there is no lease. Who was sold
// something before is told that. Those who come meanwhile wait for the next try.
func (s *Service) turnAway(at laneKey, why error) {
	waiting := present(at.sku, s.lanes.next(at, math.MaxInt))
	for batch := range slices.Chunk(waiting, batchLimit) {
		ctx, cancel := patience(s.lanes.ctx, batch)
		_ = s.guard(at.sku, func() error { // whatever comes of it, the others are told why
			_, err := s.replays(ctx, batch)
			return err
		})
		cancel()
		refuseRest(batch, why)
	}
}

// present leaves out the wishes whose buyer has gone.
func present(sku string, wishes []*wish) []*wish {
	batch := wishes[:0]
	for _, w := range wishes {
		if w.ctx.Err() != nil {
			w.tell(outcome{err: gone(w.ctx, sku)})
			continue
		}
		batch = append(batch, w)
	}
	return batch
}

// patience bounds a batch by the last deadline of its buyers.
func patience(ctx context.Context, batch []*wish) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, w := range batch {
		deadline, ok := w.ctx.Deadline()
		if !ok {
			return context.WithTimeout(ctx, batchBound)
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return context.WithDeadline(ctx, last)
}
