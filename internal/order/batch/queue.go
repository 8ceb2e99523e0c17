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
	draft  *order.Draft    // to be placed; nil for a call of End
	ending *order.Ending   // nil for a call of Sell
	order  *order.Order    // of the draft or the ending
	key    order.BuyerKey
	alone  []string   // the order, the payment, the buyer of a key: no two requests of a batch have one in common
	answer chan error // capacity 1
	since  time.Time  // when it began to wait behind

	fingerprint string // of the request
	queue       *queue // in which it waits, nil for none; guarded by the Seller's mu, as is leaves
	leaves      bool   // its caller waits for no other queue

	// What was decided last. If all are empty, it is done.
	refusal error          // why it is not
	used    *order.UsedKey // an earlier request has its key
	next    *queue         // in which it waits on
}

// newRequest returns a request. Its draft or ending is to be set.
func newRequest(ctx context.Context, o *order.Order, key, fingerprint string) *request {
	r := &request{
		ctx: ctx, order: o, key: order.BuyerKey{Buyer: o.Buyer, Key: key}, fingerprint: fingerprint,
		alone: []string{o.ID}, answer: make(chan error, 1),
	}
	if key != "" {
		r.alone = append(r.alone, o.Buyer)
	}
	return r
}

// kind is how the request moves the units of its order.
func (r *request) kind() stock.Kind {
	switch {
	case r.draft != nil:
		return stock.Reserve
	case r.ending.As == order.Paid:
		return stock.Sell
	default:
		return stock.Release
	}
}

// reset forgets what was decided.
func (r *request) reset() {
	r.refusal, r.used, r.next = nil, nil, nil
	if r.ending != nil {
		r.ending.Moved, r.ending.Now, r.ending.Payment.Refusal = false, "", ""
	}
}

// reply answers a request by what was decided. err is the outcome of what was to be done: if that has failed, it refuses
// no other request.
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

// left is the error of a request whose ctx has ended.
func (r *request) left() error {
	err := fmt.Errorf("queue of orders: %w: %w: %w", lock.ErrNotAcquired, r.ctx.Err(), context.Cause(r.ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", lock.ErrTimeout, err)
	}
	return err
}

var errClosed = fmt.Errorf("queue of orders: %w: %w", lock.ErrNotAcquired, lock.ErrClosed)

// queue holds requests in the order of their arrival. Its leader, a goroutine that runs as long as there are any, takes
// batches of them and serves one after the other.
type queue struct {
	seller *Seller
	serve  func([]*request)
	pause  time.Duration // before a batch is taken

	// Guarded by the Seller's mu: a request may move from one queue to another.
	requests []*request
	leading  bool
	closed   bool
}

// join puts requests at the end of the queue. The first one starts the leader.
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

// take removes a batch from the queue: the first requests, as long as their lines fit, one of each buyer. If there are
// none, the leader has to end.
func (q *queue) take() (batch []*request) {
	q.seller.mu.Lock()
	defer q.seller.mu.Unlock()
	lines, seen := 0, map[string]bool{}
	q.requests = slices.DeleteFunc(q.requests, func(r *request) bool {
		if lines >= maxLines || slices.ContainsFunc(r.alone, func(id string) bool { return seen[id] }) {
			return false
		}
		for _, id := range r.alone {
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
