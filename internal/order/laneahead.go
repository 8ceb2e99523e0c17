package order

import (
	"context"
	"errors"
	"slices"
	"time"
)

// withoutAhead is how many batches a lane goes without a head start after one that a
// buyer who left has made vain: in a line where buyers leave, the next ones would be, too.
const withoutAhead = 10

// headStart is a transaction that a lane begins while it waits for its lease. It
// writes the orders of who stands there and who comes meanwhile, rows that nobody
// else waits for. Keys, units and movements come when the lease is there, and then
// it is the transaction of the batch.
//
// It is planned by what was seen recently, and ends when that is no longer good. The
// buyers stay in their lane; where one of them leaves it, all was in vain.
type headStart struct {
	s      *Service
	at     laneKey
	cancel context.CancelCauseFunc

	sale  sale          // of the first in the lane; when ready is closed, the leader's
	left  bool          // one of them has left
	stop  chan struct{} // closed when the lease is there
	ready chan struct{} // closed when the orders of sale are written
	rest  chan finish   // has room for the one
	done  chan struct{} // closed when the transaction is over, and err is what came of it
	err   error
}

// finish does what is left to do in a transaction that has written so many of the
// orders of its sale.
type finish func(tx Tx, written int) error

// errInVain ends a head start that is of no use.
var errInVain = errors.New("the head start is in vain")

// startAhead begins a head start; nil where there can be none, which harms nobody.
// Whoever called it gives it up and waits for it.
func (s *Service) startAhead(ctx context.Context, at laneKey) *headStart {
	seen, left, ok := s.recent.of(at.sku)
	if !ok || s.thinkTime != 0 {
		return nil
	}
	h := &headStart{
		s: s, at: at,
		sale:  s.plan(nil, seen),
		stop:  make(chan struct{}),
		ready: make(chan struct{}),
		rest:  make(chan finish, 1),
		done:  make(chan struct{}),
	}
	if !h.take(s.lanes.front(at, batchLimit)) || len(h.sale.orders) == 0 {
		return nil
	}
	select {
	case s.headStarts <- struct{}{}:
	default:
		return nil
	}
	ctx, h.cancel = context.WithCancelCause(ctx)
	stale := time.NewTimer(left)
	first := h.sale.orders[0].Order
	go func() {
		defer close(h.done)
		defer func() { <-s.headStarts }()
		defer stale.Stop()
		h.err = s.guard(at.sku, func() error { return s.placing(ctx, first, h.run(ctx, stale.C)) })
	}()
	return h
}

// run is the transaction. Where it is run again, it writes everything again.
func (h *headStart) run(ctx context.Context, stale <-chan time.Time) func(Tx) error {
	var rest finish
	return func(tx Tx) error {
		written := 0
		for more := true; more; {
			drafts := h.sale.drafts(written)
			err := tx.Add(drafts...)
			if err != nil {
				return err
			}
			written += len(drafts)
			if more, err = h.wait(ctx, stale); err != nil {
				return err
			}
		}
		if rest == nil {
			close(h.ready)
			select {
			case rest = <-h.rest:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return rest(tx, written)
	}
}

// wait waits until there are more orders to write, or until the lease is there.
func (h *headStart) wait(ctx context.Context, stale <-chan time.Time) (more bool, err error) {
	came := h.s.lanes.came(h.at)
	for {
		select {
		case <-h.stop: // before all others
			return false, nil
		default:
		}
		if len(h.sale.all) == batchLimit {
			came = nil
		}
		select {
		case <-h.stop:
			return false, nil
		case <-came:
			before := len(h.sale.orders)
			if !h.take(h.s.lanes.front(h.at, batchLimit)) {
				return false, errInVain
			}
			if len(h.sale.orders) > before {
				return true, nil
			}
		case <-stale:
			return false, errInVain
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// take plans for who stands in the lane now. It fails where somebody has left it, could
// not have what they want, or asks for time to think.
func (h *headStart) take(wishes []*wish) bool {
	planned := len(h.sale.all)
	if len(wishes) < planned || !slices.Equal(wishes[:planned], h.sale.all) {
		h.left = true
		return false
	}
	h.s.extend(&h.sale, wishes[planned:])
	return len(h.sale.refused) == 0 && h.sale.think == 0
}

// planAhead is the plan of a batch that has had a head start, if it still stands.
func (h *headStart) planAhead(ctx context.Context, batch []*wish) (p sale, ok bool) {
	if h == nil {
		return sale{}, false
	}
	close(h.stop)
	select {
	case <-h.ready:
		ok = h.take(batch)
	case <-h.done:
	case <-ctx.Done():
	}
	if !ok {
		h.giveUp() // and not waited for: others wait for the lease
		return sale{}, false
	}
	p = h.sale
	p.ahead = h
	return p, true
}

// end lets the transaction do the rest, while ctx lasts, and commit.
func (h *headStart) end(ctx context.Context, rest finish) error {
	defer context.AfterFunc(ctx, func() { h.cancel(context.Cause(ctx)) })()
	h.rest <- rest
	<-h.done
	return h.err
}

// giveUp rolls back what is not committed.
func (h *headStart) giveUp() {
	if h != nil {
		h.cancel(errInVain)
	}
}

// over waits for the end, and reports whether a buyer has left the lane.
func (h *headStart) over() (left bool) {
	if h == nil {
		return false
	}
	<-h.done
	return h.left
}
