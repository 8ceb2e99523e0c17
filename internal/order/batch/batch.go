package batch

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// Sources are the files of this package, to be shown in lessons.
//
//go:embed *.go
var Sources embed.FS

const (
	// A batch takes no further request once it has maxLines lines: each buyer waits for all of it, and a few hundred share
	// the cost of a commit well enough. An order whose lines are not read yet counts for unreadLines.
	maxLines    = 256
	unreadLines = 4

	// After Patience, the buyers of SKUs whose rows are locked wait by themselves, for rowTimeout at most; pollTime passes
	// between two looks at the rows.
	rowTimeout = 5 * time.Second
	pollTime   = 20 * time.Millisecond

	// gatherTime is how long requests gather: behind a batch of several, since the buyers that were answered come back at
	// about the same time, and before the stock of what was sold out is read.
	gatherTime = time.Millisecond

	// maxKnown is how many SKUs are remembered as the last batch has left them.
	maxKnown = 10_000

	// batchTimeout is the time limit of a batch, longer than a transaction's own.
	batchTimeout = 40 * time.Second
)

// Config is what a Seller needs. Its functions may be nil; they are called by many goroutines at once, and must not block.
type Config struct {
	strategy.Shop

	// Locker takes the leases of the SKUs that a batch sells; nil to sell without. A batch waits for LeaseWait, and then sells
	// without; 0 means 500 ms.
	Locker    strategy.Locker
	LeaseWait time.Duration

	// Patience is how long a batch waits for rows of the stock that other transactions have locked, three times as long if
	// all are; 0 means 250 ms.
	Patience time.Duration

	// Share returns the ctx of a step that is taken for several buyers at once, so that an observer of the Store knows for
	// whom: buyers are the ctx of their calls.
	Share func(ctx context.Context, buyers []context.Context) context.Context

	OnBatch  func(orders int) // called with the number of orders that one transaction placed
	OnLeases func(err error)  // called with why a batch sells without leases, or nil when it has them
}

// Seller sells for one instance, and ends its orders. It may be used by many goroutines at once.
type Seller struct {
	Config
	leaders sync.WaitGroup

	mu             sync.Mutex
	selling        queue                // orders to be placed
	soldOut        queue                // orders to be placed, of an SKU that was sold out
	ending         queue                // orders to be ended
	behind         queue                // orders of both kinds whose rows another transaction has locked
	unleased       map[string]bool      // keys of leases that could not be had
	lockedByOthers map[string]bool      // SKUs whose row another transaction had locked
	failures       int                  // waits for leases since the last that succeeded
	known          map[string]stock.SKU // as the last batch has left them
	ahead          time.Duration        // of the database's clock to this process's
}

// New returns the Seller of an instance.
func New(c Config) *Seller {
	c.LeaseWait, c.Patience = cmp.Or(c.LeaseWait, 500*time.Millisecond), cmp.Or(c.Patience, 250*time.Millisecond)
	s := &Seller{Config: c, lockedByOthers: map[string]bool{}, unleased: map[string]bool{}, known: map[string]stock.SKU{}}
	s.selling = queue{seller: s, serve: s.sell}
	s.soldOut = queue{seller: s, serve: func(b []*request) { s.guard(b, s.refuse) }, pause: gatherTime}
	s.ending = queue{seller: s, serve: func(b []*request) { s.guard(b, s.end) }}
	s.behind = queue{seller: s, serve: func(b []*request) { s.guard(b, s.awaitRows) }, pause: pollTime}
	return s
}

// await returns the answer to a request in a queue.
func (s *Seller) await(r *request) error {
	select {
	case err := <-r.answer:
		return err
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
	return <-r.answer // if it was in no queue, the order is being decided
}

// Queued returns how many requests wait.
func (s *Seller) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.selling.requests) + len(s.soldOut.requests) + len(s.ending.requests) + len(s.behind.requests)
}

// Close answers the waiting requests with lock.ErrClosed, waits for the batches that are being served, and lets no more
// requests in. Calling it again is safe.
func (s *Seller) Close() {
	s.mu.Lock()
	for _, q := range []*queue{&s.selling, &s.soldOut, &s.ending, &s.behind} {
		q.closed = true
		q.requests = q.admitLocked(q.requests)
	}
	s.mu.Unlock()
	s.leaders.Wait()
}

// guard serves a batch. A panic leaves no request without an answer and no queue without a leader.
func (s *Seller) guard(buyers []*request, serve func([]*request) error) {
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		moved := map[*queue][]*request{}
		for _, r := range buyers {
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
