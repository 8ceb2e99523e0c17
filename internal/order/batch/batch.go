package batch

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
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
	// Once a batch has maxLines lines, it takes no further request: each buyer waits for the whole batch, and a few hundred
	// lines share the cost of a commit well enough. An order whose lines are not read yet counts as unreadLines.
	maxLines    = 256
	unreadLines = 4

	// A request whose row another transaction has locked waits in the queue behind, until rowTimeout after it came. If its
	// batch has waited in vain, it is tried alone at least once. It is tried again after pollTime. The leader of that queue
	// runs aloneAtOnce transactions at a time, and begins none later than roundTime after the first.
	rowTimeout  = 5 * time.Second
	pollTime    = 20 * time.Millisecond
	aloneAtOnce = 8
	roundTime   = time.Second

	// gatherTime is the time for which requests gather after a batch of several requests, because the answered buyers come back at
	// about the same time. They also gather before the stock of sold-out SKUs is read.
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
	unleased       map[string]bool      // keys of leases that were not granted
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
	s.soldOut = queue{seller: s, serve: func(b []*request) { s.guard(b, s.refuse) }, pause: gatherTime}
	s.ending = queue{seller: s, serve: func(b []*request) { s.guard(b, s.end) }}
	s.behind = queue{seller: s, serve: s.serveBehind, pause: pollTime}
	return s
}

// await returns the answer to a request in a queue. Without an answer in time, the outcome is unknown, and the leader may
// still decide the request.
func (s *Seller) await(r *request) (answered bool, err error) {
	select {
	case err := <-r.answer:
		return true, err
	case <-r.ctx.Done():
	}
	s.mu.Lock()
	r.leaves = true
	if q := r.queue; q != nil {
		q.requests = slices.DeleteFunc(q.requests, func(other *request) bool { return other == r })
		r.queue = nil
		r.answer <- r.left()
	}
	s.mu.Unlock()
	select { // a request in no queue is being decided
	case err := <-r.answer:
		return true, err
	case <-time.After(leaveTime):
		return false, fmt.Errorf("%w: its transaction has not ended in time", order.ErrUnknownOutcome)
	}
}

// Queued returns the number of waiting requests.
func (s *Seller) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.selling.requests) + len(s.soldOut.requests) + len(s.ending.requests) + len(s.behind.requests)
}

// Close answers the waiting requests with lock.ErrClosed, waits for the batches that are being served, and refuses further
// requests. Calling it again is safe.
func (s *Seller) Close() {
	s.mu.Lock()
	for _, q := range []*queue{&s.selling, &s.soldOut, &s.ending, &s.behind} {
		q.closed = true
		q.requests = q.admitLocked(q.requests)
	}
	s.mu.Unlock()
	s.leaders.Wait()
}

// serveBehind serves alone each request whose batch gave up waiting for a lock: in a transaction of its own, so that no
// other request waits for its rows. While a SKU is locked, one request at a time tries it, and its other requests stay
// behind. All other requests return to their queue.
func (s *Seller) serveBehind(requests []*request) {
	var all errgroup.Group
	all.SetLimit(aloneAtOnce)
	tried, enough := map[string]bool{}, time.Now().Add(roundTime)
	moved := map[*queue][]*request{}
	for _, r := range requests {
		s.mu.Lock()
		locked := s.lockedSKUs(r)
		s.mu.Unlock()
		isTried := len(locked) > 0 && slices.ContainsFunc(r.order.SKUs(), func(sku string) bool { return tried[sku] })
		switch {
		case isTried && r.noWait():
			r.refusal = order.ErrLocked
			r.reply(nil)
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
			for _, sku := range r.order.SKUs() {
				tried[sku] = true // or a cart would lock its row, and wait for another one
			}
			q := &s.selling
			if r.ending != nil {
				q = &s.ending
			}
			moved[q] = append(moved[q], r)
		}
	}
	for q, requests := range moved {
		q.putFirst(requests)
	}
	_ = all.Wait() // no error
}

// lockedSKUs returns the SKUs of a request whose rows another transaction had locked. The caller has locked mu.
func (s *Seller) lockedSKUs(r *request) []string {
	return slices.DeleteFunc(r.order.SKUs(), func(sku string) bool { return s.lockedByOthers[sku] == 0 })
}

// turn returns the time by which the requests in the queue behind are sorted. It is later by roundTime for each failed
// attempt, of the request itself or for one of its SKUs. So a cart that waits for a row does not keep the rows of its other
// SKUs locked for one attempt after the other, before their orders are served. The caller has locked mu.
func (s *Seller) turn(r *request) time.Time {
	failed := r.tries
	for _, line := range r.order.Lines {
		failed += s.lockedByOthers[line.SKU]
	}
	return r.since.Add(time.Duration(failed) * roundTime)
}

func (s *Seller) serveAlone(r *request) {
	r.alone = true
	if r.ending != nil {
		s.guard([]*request{r}, s.end)
	} else {
		s.sellUnder(nil, []*request{r}) // other batches would wait for the lease
	}
}

// guard serves a batch. A panic leaves no request without an answer and no queue without a leader. If the transaction has
// waited in vain for a lock, each request of the batch is served alone. With NoWait, a request that then waits in vain
// fails.
func (s *Seller) guard(buyers []*request, serve func([]*request) error) {
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		inVain := errors.Is(err, order.ErrLocked)
		moved := map[*queue][]*request{}
		for _, r := range buyers {
			if len(buyers) == 1 {
				r.tries++
			}
			enough := r.noWait() && len(buyers) == 1
			switch {
			case inVain && !enough && !r.overdue():
				r.alone, r.next, r.refusal, r.used = true, &s.behind, err, nil
			case enough && r.next == &s.behind:
				r.next, r.refusal = nil, order.ErrLocked
			}
			if r.next != nil {
				moved[r.next] = append(moved[r.next], r)
			} else {
				r.reply(err)
			}
		}
		for q, buyers := range moved {
			q.putFirst(buyers)
		}
	}()
	for _, r := range buyers {
		r.reset()
	}
	err = serve(buyers)
}
