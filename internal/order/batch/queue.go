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
	"example.com/shop/internal/stock"
)

// request is one call of Sell or End that waits for its answer.
type request struct {
	ctx    context.Context //nolint:containedctx // the caller's
	draft  *order.Draft    // nil for a call of End
	ending *order.Ending   // nil for a call of Sell
	order  *order.Order    // of the draft or the ending
	key    order.BuyerKey
	ids    []string   // of the order, the payment and the buyer of a key: no two requests of a batch share one
	answer chan error // capacity 1
	since  time.Time  // when the request came
	alone  bool       // its batch has waited in vain for a lock: the request gets a transaction of its own
	tries  int        // how often it was served in a transaction of its own
	turn   time.Time  // by which the queue behind is sorted

	fingerprint string // of the request
	queue       *queue // in which the request waits, nil for none; the Seller's mu guards queue and leaves
	leaves      bool   // the caller does not wait in another queue

	// The last decision. If all are empty, the order is placed or ended.
	refusal error          // the reason why it is not
	used    *order.UsedKey // the use of its key by an earlier request
	next    *queue         // the queue in which the request goes on waiting
}

// newRequest returns a request. The caller sets its draft or ending.
func newRequest(ctx context.Context, o *order.Order, key, fingerprint string) *request {
	r := &request{
		ctx: ctx, order: o, key: order.BuyerKey{Buyer: o.Buyer, Key: key}, fingerprint: fingerprint,
		ids: []string{o.ID}, answer: make(chan error, 1), since: time.Now(),
	}
	if key != "" {
		r.ids = append(r.ids, o.Buyer)
	}
	return r
}

// kinds returns the kinds of movements that the request makes.
func (r *request) kinds() []stock.Kind {
	switch {
	case r.isFree():
		return []stock.Kind{stock.Reserve, stock.Sell}
	case r.draft != nil:
		return []stock.Kind{stock.Reserve}
	case r.ending.As == order.Paid:
		return []stock.Kind{stock.Sell}
	default:
		return []stock.Kind{stock.Release}
	}
}

// isFree reports whether the request places an order that costs nothing, and so is paid at once.
func (r *request) isFree() bool { return r.draft != nil && r.draft.Status == order.Paid }

// reset forgets the last decision.
func (r *request) reset() {
	r.refusal, r.used, r.next = nil, nil, nil
	if r.ending != nil {
		r.ending.Moved, r.ending.Now, r.ending.Payment.Refusal = false, "", ""
	}
}

// reply answers a request by the last decision. err is the outcome of the transaction: if it has failed, its decisions
// refuse no request.
func (r *request) reply(err error) {
	if r.ending != nil && (r.used != nil || r.refusal != nil) {
		r.ending.Moved = false
	}
	switch {
	case r.used != nil && r.draft != nil:
		err = r.draft.Replay(*r.used)
	case r.used != nil:
		err = order.ErrKeyTaken
	case r.refusal != nil && err == nil:
		err = r.refusal
	case r.refusal != nil:
		err = fmt.Errorf("%w: behind orders that failed", order.ErrBusy)
	}
	r.answer <- err
}

func (r *request) noWait() bool { return r.ending != nil && r.ending.NoWait }

func (r *request) overdue() bool { return time.Since(r.since) > rowTimeout }

// left returns the error for a request whose ctx has ended.
func (r *request) left() error {
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
			r.answer <- errClosed
		case r.leaves:
			r.answer <- r.left()
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
			r.queue, r.refusal = nil, cmp.Or(r.refusal, order.ErrLocked)
			r.reply(nil)
			return true
		}
		if lines >= maxLines || slices.ContainsFunc(r.ids, func(id string) bool { return seen[id] }) {
			return false
		}
		for _, id := range r.ids {
			seen[id] = true
		}
		lines += cmp.Or(len(r.order.Lines), unreadLines)
		batch = append(batch, r)
		r.queue = nil
		return true
	})
	q.leading = len(batch) > 0
	return batch
}
