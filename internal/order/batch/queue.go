package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
)

// request is one call of Sell or End that waits for its answer.
type request struct {
	ctx    context.Context //nolint:containedctx // the caller's
	draft  *order.Draft    // to be placed; nil for a call of End
	ending *order.Ending   // nil for a call of Sell
	order  *order.Order    // of the draft or the ending
	key    order.BuyerKey
	alone  []string   // the buyer, the order, the payment: no two requests of a batch have one in common
	answer chan error // capacity 1

	fingerprint string // of the request

	queue  *queue // in which it waits, nil for none; guarded by its mu, as is leaves
	leaves bool   // its caller waits for no other queue

	// What was decided last. If all are empty, it is done.
	refusal error          // why it is not
	used    *order.UsedKey // an earlier request has its key
	next    *queue         // in which it waits on

	since time.Time // when it began to wait behind
}

func newSale(ctx context.Context, d *order.Draft) *request {
	return &request{
		ctx: ctx, draft: d, order: &d.Order, key: order.BuyerKey{Buyer: d.Buyer, Key: d.Key}, fingerprint: d.Fingerprint,
		alone: []string{d.Buyer}, answer: make(chan error, 1),
	}
}

func newEnding(ctx context.Context, e *order.Ending) *request {
	r := &request{
		ctx: ctx, ending: e, order: &e.Order, key: order.BuyerKey{Buyer: e.Order.Buyer, Key: e.Key}, fingerprint: e.Fingerprint,
		alone: []string{e.Order.ID}, answer: make(chan error, 1),
	}
	if e.Key != "" {
		r.alone = append(r.alone, e.Order.Buyer)
	}
	if e.Payment.ID != "" {
		r.alone = append(r.alone, e.Payment.ID)
	}
	return r
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
	max     int           // requests
	pause   time.Duration // before a batch is taken
	serve   func([]*request)
	leaders *sync.WaitGroup

	mu       *sync.Mutex // of all queues of a Seller: a request may move from one to another
	requests []*request
	leading  bool
	closed   bool
}

// join puts requests at the end of the queue. The first one starts the leader.
func (q *queue) join(requests ...*request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosed
	case len(q.requests)+len(requests) > q.max:
		return fmt.Errorf("queue of orders: %w: %w", lock.ErrNotAcquired, lock.ErrQueueFull)
	}
	for _, r := range requests {
		r.queue = q
	}
	q.requests = append(q.requests, requests...)
	q.leadLocked()
	return nil
}

// putFirst puts requests from another queue at the head of this one, also if it is full.
func (q *queue) putFirst(requests []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	requests = slices.DeleteFunc(requests, func(r *request) bool {
		switch {
		case q.closed:
			r.answer <- errClosed
		case r.leaves:
			r.answer <- r.left()
		default:
			r.queue = q
		}
		return r.queue == nil
	})
	q.requests = slices.Concat(requests, q.requests)
	q.leadLocked()
}

func (q *queue) leadLocked() {
	if !q.leading && len(q.requests) > 0 {
		q.leading = true
		q.leaders.Go(func() {
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
	q.mu.Lock()
	defer q.mu.Unlock()
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

// closeLocked lets no more requests in, and answers those who wait.
func (q *queue) closeLocked() {
	q.closed = true
	for _, r := range q.requests {
		r.queue = nil
		r.answer <- errClosed
	}
	q.requests = nil
}
