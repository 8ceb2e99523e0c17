package batch

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// Sources are the files of this package, which lessons show.
//
//go:embed *.go
var Sources embed.FS

const (
	// Once a batch has maxLines lines, it takes no further request: each buyer waits for the whole batch, and a few
	// hundred lines share the cost of a commit well enough. An order whose lines are not read yet counts as unreadLines.
	maxLines    = 256
	unreadLines = 4

	// A request whose row another transaction has locked waits in the queue behind, until rowTimeout after it came. If its
	// batch has waited in vain, it is tried alone at least once. It is tried again after pollTime. The leader of that
	// queue runs aloneAtOnce transactions at a time, and begins none later than roundTime after the first.
	rowTimeout  = 5 * time.Second
	pollTime    = 20 * time.Millisecond
	aloneAtOnce = 8
	roundTime   = time.Second

	// gatherTime is the time for which requests gather after a batch of several requests, because the answered buyers come
	// back at about the same time. They also gather before the stock of sold-out SKUs is read.
	gatherTime = time.Millisecond

	// maxKnown is the number of SKUs whose last level is remembered.
	maxKnown = 10_000

	// batchTimeout limits a batch. It is longer than the time limit of a transaction.
	batchTimeout = 40 * time.Second
	// leaveTime is the time for which a caller whose ctx has ended waits for the outcome of a transaction.
	leaveTime = 2 * time.Second
)

// Config is what a Seller needs. Its functions may be nil. Many goroutines call them at once, and they must not block.
type Config struct {
	strategy.Shop

	// Locker takes the leases of the SKUs that a batch sells; nil to sell without leases. A batch waits for a lease for
	// LeaseWait, and then sells without it; 0 means 500 ms.
	Locker    strategy.Locker
	LeaseWait time.Duration

	// Patience is the time for which a batch waits for stock rows that other transactions have locked. It waits three
	// times as long if all its rows are locked. 0 means 250 ms.
	Patience time.Duration

	// Share returns the ctx of a step that serves several buyers, so that an observer of the Store knows these buyers. The
	// argument buyers has the ctx of their calls.
	Share func(ctx context.Context, buyers []context.Context) context.Context

	OnBatch  func(orders int) // called with the number of orders that one transaction placed
	OnLeases func(err error)  // called with the reason why a batch sells without leases, or nil if it has leases
}

// Seller places and ends orders for one instance. It may be used by many goroutines at once.
type Seller struct {
	Config
	leaders sync.WaitGroup

	mu             sync.Mutex
	selling        queue                // orders to place
	soldOut        queue                // orders to place, of a SKU that was sold out
	ending         queue                // orders to end
	behind         queue                // orders of both kinds whose rows another transaction has locked
	unleased       map[string]bool      // SKUs whose leases were not granted
	lockedByOthers map[string]int       // by SKU, how often its row was found locked since it was last free
	failures       int                  // failed waits for leases since the last success
	known          map[string]stock.SKU // as the last batch has left them
	ahead          time.Duration        // by which the database's clock is ahead of this process's
}

// New returns the Seller of an instance.
func New(c Config) *Seller {
	c.LeaseWait, c.Patience = cmp.Or(c.LeaseWait, 500*time.Millisecond), cmp.Or(c.Patience, 250*time.Millisecond)
	s := &Seller{Config: c, lockedByOthers: map[string]int{}, unleased: map[string]bool{}, known: map[string]stock.SKU{}}
	s.selling = queue{seller: s, serve: s.sell}
	s.soldOut = queue{seller: s, serve: s.refuseSoldOut, pause: gatherTime}
	s.ending = queue{seller: s, serve: s.end}
	s.behind = queue{seller: s, serve: s.serveBehind, pause: pollTime}
	return s
}

// Queued returns the number of waiting requests.
func (s *Seller) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.selling.requests) + len(s.soldOut.requests) + len(s.ending.requests) + len(s.behind.requests)
}

// Close answers the waiting requests with lock.ErrClosed, waits for the batches that are being served, and refuses
// further requests. Calling it again is safe.
func (s *Seller) Close() {
	s.mu.Lock()
	for _, q := range []*queue{&s.selling, &s.soldOut, &s.ending, &s.behind} {
		q.closed = true
		q.requests = q.admitLocked(q.requests)
	}
	s.mu.Unlock()
	s.leaders.Wait()
}

// context returns the ctx of a batch. It has the values of the first caller's ctx, but does not end with it.
func (s *Seller) context(requests []*request) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(requests[0].ctx)
	if s.Share != nil {
		var callers []context.Context
		for _, r := range requests {
			callers = append(callers, r.ctx)
		}
		ctx = s.Share(ctx, callers)
	}
	return context.WithTimeout(ctx, batchTimeout)
}

// serve decides the requests of a batch and answers them. A panic leaves no request without an answer and no queue
// without a leader.
func (s *Seller) serve(requests []*request, decide func() (*batch, error)) {
	b, err := &batch{}, error(nil) // after a panic
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		s.answerAll(requests, b, err)
	}()
	b, err = decide()
}

// answerAll answers each request by its decision, or moves it to the queue in which it waits. If the transaction has
// waited in vain for a lock, each request of the batch is served alone. With NoWait, a request that then waits in vain
// fails.
func (s *Seller) answerAll(requests []*request, b *batch, err error) {
	waiting := map[*queue][]*request{}
	for _, r := range requests {
		d, alone := b.decisions[r], len(requests) == 1
		if alone {
			r.tries++
		}
		lastTry := alone && r.noWait()
		switch {
		case errors.Is(err, order.ErrLocked) && !lastTry && !r.overdue():
			r.alone, d = true, decision{waits: &s.behind}
		case lastTry && d.waits == &s.behind:
			d = decision{refused: order.ErrLocked}
		}
		if d.waits != nil {
			waiting[d.waits] = append(waiting[d.waits], r)
		} else {
			r.answered <- r.answer(d, b.outcomes[r], err)
		}
	}
	for q, requests := range waiting {
		q.putFirst(requests)
	}
}

// inTx runs do in a transaction, and again after a deadlock. It returns the last attempt. Without an error, this
// attempt is committed or has changed nothing.
func (s *Seller) inTx(ctx context.Context, requests []*request, do func(order.Tx, *batch) error) (*batch, error) {
	b := &batch{} // without an attempt
	err := s.Store.InTx(ctx, func(tx order.Tx) error {
		b = newBatch(requests)
		return do(tx, b)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(requests) == 1 && errors.Is(err, order.ErrLocked) {
		// If this attempt has locked the rows of its SKUs, it has waited in vain for a later gap, such as the end of the
		// ledger.
		for sku := range b.levels.SKUs {
			s.lockedByOthers[sku]++
		}
	}
	if err != nil && !errors.Is(err, order.ErrNothing) {
		return b, err
	}
	if len(s.known) > maxKnown {
		clear(s.known)
	}
	maps.Copy(s.known, b.levels.SKUs)
	if len(b.levels.SKUs) > 0 {
		s.ahead = b.ahead
	}
	for sku := range b.levels.SKUs {
		delete(s.lockedByOthers, sku)
	}
	for _, sku := range b.lockedByOthers {
		s.lockedByOthers[sku]++
	}
	return b, nil
}

// serveBehind serves alone each request whose batch gave up waiting for a lock: in a transaction of its own, so that no
// other request waits for its rows. While a SKU is locked, one request at a time tries it, and its other requests stay
// behind. All other requests return to their queue.
func (s *Seller) serveBehind(requests []*request) {
	var all errgroup.Group
	all.SetLimit(aloneAtOnce)
	tried, enough := map[string]bool{}, time.Now().Add(roundTime)
	returned := map[*queue][]*request{}
	for _, r := range requests {
		s.mu.Lock()
		locked := s.lockedSKUs(r)
		s.mu.Unlock()
		isTried := len(locked) > 0 && slices.ContainsFunc(r.draft.SKUs(), func(sku string) bool { return tried[sku] })
		switch {
		case isTried && r.noWait():
			r.answered <- answer{err: order.ErrLocked}
		case isTried:
			s.behind.join(r)
		case r.alone || len(locked) > 0:
			for _, sku := range locked {
				tried[sku] = true
			}
			all.Go(func() error {
				if time.Now().After(enough) { // it has waited for its turn
					s.behind.join(r)
				} else {
					s.serveAlone(r)
				}
				return nil
			})
		default:
			for _, sku := range r.draft.SKUs() {
				tried[sku] = true // or a cart would lock its row, and wait for another one
			}
			q := &s.selling
			if r.ending != nil {
				q = &s.ending
			}
			returned[q] = append(returned[q], r)
		}
	}
	for q, requests := range returned {
		q.putFirst(requests)
	}
	_ = all.Wait() // no error
}

// lockedSKUs returns the SKUs of a request whose rows another transaction had locked. The caller has locked mu.
func (s *Seller) lockedSKUs(r *request) []string {
	return slices.DeleteFunc(r.draft.SKUs(), func(sku string) bool { return s.lockedByOthers[sku] == 0 })
}

// turn returns the time by which the requests in the queue behind are sorted. It is later by roundTime for each failed
// attempt, of the request itself or for one of its SKUs. So a cart that waits for a row does not keep the rows of its
// other SKUs locked for one attempt after the other, before their orders are served. The caller has locked mu.
func (s *Seller) turn(r *request) time.Time {
	failed := r.tries
	for _, line := range r.draft.Lines {
		failed += s.lockedByOthers[line.SKU]
	}
	return r.since.Add(time.Duration(failed) * roundTime)
}

func (s *Seller) serveAlone(r *request) {
	r.alone = true
	if r.ending != nil {
		s.end([]*request{r})
	} else {
		s.sellUnder(nil, []*request{r}) // other batches would wait for the lease
	}
}
