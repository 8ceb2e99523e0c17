package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
)

// request is one call of Sell, or one ending of a call of End, that waits for its answer.
type request struct {
	ctx    context.Context //nolint:containedctx // the caller's
	draft  order.Draft     // the order to place, or the order to end as it was last read
	ending *order.Ending   // nil for a call of Sell
	key    order.BuyerKey  // the idempotency key of the request; its Key is empty for none
	ids    []string        // of the order, the payment and the buyer of a key: no two requests of a batch share one

	answered chan answer // capacity 1
	since    time.Time   // when the request came
	alone    bool        // its batch has waited in vain for a lock: the request gets a transaction of its own
	tries    int         // how often it was served in a transaction of its own
	turn     time.Time   // by which the queue behind is sorted

	// The Seller's mu guards both.
	queue *queue // in which the request waits; nil for none
	gone  bool   // the caller's ctx has ended: the request must not enter another queue
}

// answer is the answer to a request.
type answer struct {
	draft   order.Draft   // of a call of Sell
	outcome order.Outcome // of a call of End, without its Err
	err     error
}

func newRequest(ctx context.Context, d order.Draft, key string) *request {
	r := &request{
		ctx: ctx, draft: d, key: order.BuyerKey{Buyer: d.Buyer, Key: key}, ids: []string{d.ID},
		answered: make(chan answer, 1), since: time.Now(),
	}
	if key != "" {
		r.ids = append(r.ids, d.Buyer)
	}
	return r
}

// answer returns the answer to a request that has this decision, of a transaction with this error. A transaction that
// has failed refuses no request.
func (r *request) answer(d decision, outcome *order.Outcome, err error) answer {
	switch {
	case d.replayed != nil && r.ending == nil:
		err = r.draft.Replay(*d.replayed)
	case d.replayed != nil:
		err = order.ErrKeyTaken
	case d.refused != nil && err == nil:
		err = d.refused
	case d.refused != nil:
		err = fmt.Errorf("%w: behind orders that failed", order.ErrBusy)
	}
	a := answer{draft: r.draft, err: err}
	if outcome != nil {
		a.outcome = *outcome
		if err != nil {
			a.outcome.Order.Status = r.draft.Status // as it was read
		}
		a.outcome.First = outcome.First && (err == nil || errors.Is(err, order.ErrUnknownOutcome))
	}
	return a
}

// await returns the answer to a request in a queue. Without an answer in time, the outcome is unknown, and the leader
// may still decide the request.
func (s *Seller) await(r *request) answer {
	select {
	case a := <-r.answered:
		return a
	case <-r.ctx.Done():
	}
	s.mu.Lock()
	r.gone = true
	if q := r.queue; q != nil {
		q.requests = slices.DeleteFunc(q.requests, func(other *request) bool { return other == r })
		r.queue = nil
		r.answered <- answer{err: r.abandoned()}
	}
	s.mu.Unlock()
	select { // a request in no queue is being decided
	case a := <-r.answered:
		return a
	case <-time.After(leaveTime):
		err := fmt.Errorf("%w: its transaction has not ended in time", order.ErrUnknownOutcome)
		return answer{outcome: order.Outcome{First: true}, err: err} // the transaction may still end the order
	}
}

func (r *request) noWait() bool { return r.ending != nil && r.ending.NoWait }

func (r *request) overdue() bool { return time.Since(r.since) > rowTimeout }

// abandoned returns the error for a request whose ctx has ended.
func (r *request) abandoned() error {
	err := fmt.Errorf("queue of orders: %w: %w: %w", lock.ErrNotAcquired, r.ctx.Err(), context.Cause(r.ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", lock.ErrTimeout, err)
	}
	return err
}

var errClosed = fmt.Errorf("queue of orders: %w: %w", lock.ErrNotAcquired, lock.ErrClosed)

// queue holds requests in the order of their arrival. Its leader is a goroutine that runs as long as there are
// requests. The leader serves them, batch after batch.
type queue struct {
	seller *Seller
	serve  func([]*request)
	pause  time.Duration // before a batch is taken

	// The Seller's mu guards the following fields, because a request may move from one queue to another.
	requests []*request
	leading  bool
	closed   bool
}

// join puts requests at the end of the queue. The first request starts the leader.
func (q *queue) join(requests ...*request) {
	q.seller.mu.Lock()
	defer q.seller.mu.Unlock()
	q.requests = append(q.requests, q.admitLocked(requests)...)
	q.leadLocked()
}

// putFirst puts requests from another queue at the head of this one.
func (q *queue) putFirst(requests []*request) {
	q.seller.mu.Lock()
	defer q.seller.mu.Unlock()
	q.requests = append(q.admitLocked(requests), q.requests...)
	q.leadLocked()
}

// admitLocked answers the requests that cannot wait in the queue, and returns the others.
func (q *queue) admitLocked(requests []*request) (admitted []*request) {
	for _, r := range requests {
		switch r.queue = nil; {
		case q.closed:
			r.answered <- answer{err: errClosed}
		case r.gone:
			r.answered <- answer{err: r.abandoned()}
		default:
			r.queue = q
			admitted = append(admitted, r)
		}
	}
	return admitted
}

func (q *queue) leadLocked() {
	if !q.leading && len(q.requests) > 0 {
		q.leading = true
		q.seller.leaders.Go(func() {
			for pause := q.pause; ; {
				time.Sleep(pause)
				batch := q.take()
				if len(batch) == 0 {
					return
				}
				q.serve(batch)
				pause = q.pause
				if len(batch) > 1 {
					pause = max(pause, gatherTime)
				}
			}
		})
	}
}

// take removes a batch from the queue: the first requests that fit, one of each buyer. If it is empty, the leader must
// end. From the queue behind, take goes by turn, and answers the requests that are overdue.
func (q *queue) take() (batch []*request) {
	q.seller.mu.Lock()
	defer q.seller.mu.Unlock()
	lines, seen := 0, map[string]bool{}
	if q == &q.seller.behind {
		for _, r := range q.requests {
			r.turn = q.seller.turn(r)
		}
		slices.SortStableFunc(q.requests, func(a, b *request) int { return a.turn.Compare(b.turn) })
	}
	q.requests = slices.DeleteFunc(q.requests, func(r *request) bool {
		if q == &q.seller.behind && r.overdue() && (r.tries > 0 || !r.alone || len(q.seller.lockedSKUs(r)) > 0) {
			r.queue = nil
			r.answered <- answer{err: order.ErrLocked}
			return true
		}
		if lines >= maxLines || slices.ContainsFunc(r.ids, func(id string) bool { return seen[id] }) {
			return false
		}
		for _, id := range r.ids {
			seen[id] = true
		}
		lines += cmp.Or(len(r.draft.Lines), unreadLines)
		batch = append(batch, r)
		r.queue = nil
		return true
	})
	q.leading = len(batch) > 0
	return batch
}
