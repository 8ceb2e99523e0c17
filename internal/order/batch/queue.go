package batch

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
)

// buyer is one call of Sell that waits for its answer.
type buyer struct {
	ctx    context.Context //nolint:containedctx // the caller's
	draft  *order.Draft
	answer chan error // capacity 1

	queue *queue // in which it waits, nil for none; guarded by its mu, as is place
	place *list.Element

	// What was decided last. If all are empty, the order is placed.
	refusal error        // why it is not
	claim   *order.Claim // an earlier request has its key
	next    *queue       // in which it waits on

	since time.Time // it has waited for a locked row
}

func (w *buyer) key() order.BuyerKey { return order.BuyerKey{Buyer: w.draft.Buyer, Key: w.draft.Key} }

// reply answers a buyer by what was decided. err is the outcome of the orders that were to be placed: if these have
// failed, what they would have taken refuses no other.
func (w *buyer) reply(err error) {
	locked := new(order.LockedError)
	switch {
	case w.claim != nil:
		err = w.draft.Replay(*w.claim)
	case w.refusal != nil && (err == nil || errors.As(w.refusal, &locked)):
		err = w.refusal
	case w.refusal != nil:
		err = fmt.Errorf("%w: behind orders that failed", order.ErrBusy)
	}
	w.answer <- err
}

// left is the error of a buyer whose ctx has ended.
func (w *buyer) left() error {
	err := fmt.Errorf("queue of orders: %w: %w: %w", lock.ErrNotAcquired, w.ctx.Err(), context.Cause(w.ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", lock.ErrTimeout, err)
	}
	return err
}

var errClosed = fmt.Errorf("queue of orders: %w: %w", lock.ErrNotAcquired, lock.ErrClosed)

// queue holds buyers in the order of their arrival. Its leader, a goroutine that runs as long as there are any, takes
// batches of them and serves one after the other.
type queue struct {
	max     int           // buyers
	pause   time.Duration // before a batch is taken
	serve   func([]*buyer)
	leaders *sync.WaitGroup

	mu      *sync.Mutex // of all queues of a Seller: a buyer may move from one to another
	buyers  list.List   // of *buyer
	leading bool
	closed  bool
}

// join puts a buyer at the end of the queue. The first one starts the leader.
func (q *queue) join(w *buyer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosed
	case q.buyers.Len() >= q.max:
		return fmt.Errorf("queue of orders: %w: %w", lock.ErrNotAcquired, lock.ErrQueueFull)
	}
	w.queue, w.place = q, q.buyers.PushBack(w)
	q.leadLocked()
	return nil
}

// putFirst puts buyers from another queue at the head of this one, also if it is full.
func (q *queue) putFirst(buyers []*buyer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range slices.Backward(buyers) {
		if q.closed {
			w.answer <- errClosed
			continue
		}
		w.queue, w.place = q, q.buyers.PushFront(w)
	}
	q.leadLocked()
}

func (q *queue) leadLocked() {
	if !q.leading && q.buyers.Len() > 0 {
		q.leading = true
		q.leaders.Go(func() {
			for pause := q.pause; ; {
				time.Sleep(pause)
				batch := q.take()
				if len(batch) == 0 {
					return
				}
				q.serve(batch)
				if len(batch) > 1 {
					pause = max(q.pause, gatherTime)
				}
			}
		})
	}
}

// take removes a batch from the queue: the first buyers, one order of each, as long as their lines fit. If there are
// none, the leader has to end.
func (q *queue) take() (batch []*buyer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, names := 0, map[string]bool{}
	for e := q.buyers.Front(); e != nil && lines < maxLines; {
		w := e.Value.(*buyer) //nolint:forcetypeassert // nothing else is put in
		e = e.Next()
		if !names[w.draft.Buyer] {
			names[w.draft.Buyer] = true
			lines += len(w.draft.Lines)
			batch = append(batch, w)
			w.removeLocked()
		}
	}
	q.leading = len(batch) > 0
	return batch
}

// removeLocked takes a buyer out of the queue in which it waits, and reports whether there was one.
func (w *buyer) removeLocked() bool {
	if w.queue == nil {
		return false
	}
	w.queue.buyers.Remove(w.place)
	w.queue, w.place = nil, nil
	return true
}

// closeLocked lets no more buyers in, and answers those who wait.
func (q *queue) closeLocked() {
	q.closed = true
	for e := q.buyers.Front(); e != nil; e = q.buyers.Front() {
		w := e.Value.(*buyer) //nolint:forcetypeassert // as in take
		w.removeLocked()
		w.answer <- errClosed
	}
}
