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

	"example.com/shop/internal/order"
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

	// maxSeen is how many SKUs are remembered as they were read last, and how many repeated keys.
	maxSeen = 10_000

	// batchTimeout is the time limit of a batch, longer than a transaction's own.
	batchTimeout = 40 * time.Second
)

// Config is what a Seller needs. Its functions may be nil; they are called by many goroutines at once, and must not
// block.
type Config struct {
	strategy.Shop

	// Locker takes the leases of the SKUs that a batch sells; nil to sell without. A batch waits for LeaseWait, and then sells
	// without; 0 means 500 ms.
	Locker    strategy.Locker
	LeaseWait time.Duration

	// Patience is how long a batch waits for rows of the stock that other transactions have locked, three times as long if
	// all are; 0 means 250 ms.
	Patience time.Duration

	// MaxQueue is how many requests may wait in each queue; 0 means 10,000.
	MaxQueue int

	// Share returns the ctx of a step that is taken for several buyers at once, so that an observer of the Store knows for
	// whom: buyers returns the ctx of the call of each, at any moment of the step.
	Share func(ctx context.Context, buyers func() []context.Context) context.Context

	OnWait   func(ctx context.Context) // called with the ctx of a call that waits in a queue
	OnBatch  func(orders int)          // called with the number of orders that one transaction placed
	OnLeases func(err error)           // called with why a batch sells without leases, or nil when it has them
	OnPanic  func(err error)           // called with a panic and its stack; the batch's buyers get an error without a code
}

// Seller sells for one instance, and ends its orders. It may be used by many goroutines at once.
type Seller struct {
	Config
	leaders sync.WaitGroup

	mu       sync.Mutex
	selling  queue           // orders to be placed
	unsold   queue           // orders to be placed, of an SKU that was sold out, or by a repeated key
	ending   queue           // orders to be ended
	behind   queue           // orders of both kinds whose rows another transaction has locked
	locked   map[string]bool // SKUs whose row another transaction had locked
	empty    map[string]bool // SKUs that were sold out
	unleased map[string]bool // SKUs whose leases could not be had
	failures int             // waits for leases since the last that succeeded
	repeated map[order.BuyerKey]bool

	seen      map[string]stock.SKU // as they were read last
	seenAt    time.Time            // when any was, by the database's clock
	seenSince time.Time            // and by this process's
}

// New returns the Seller of an instance.
func New(c Config) *Seller {
	c.MaxQueue = cmp.Or(c.MaxQueue, 10_000)
	c.LeaseWait, c.Patience = cmp.Or(c.LeaseWait, 500*time.Millisecond), cmp.Or(c.Patience, 250*time.Millisecond)
	if c.Share == nil {
		c.Share = func(ctx context.Context, _ func() []context.Context) context.Context { return ctx }
	}
	if c.OnWait == nil {
		c.OnWait = func(context.Context) {}
	}
	if c.OnBatch == nil {
		c.OnBatch = func(int) {}
	}
	if c.OnLeases == nil {
		c.OnLeases = func(error) {}
	}
	if c.OnPanic == nil {
		c.OnPanic = func(error) {}
	}
	s := &Seller{Config: c, locked: map[string]bool{}, empty: map[string]bool{}, unleased: map[string]bool{}, repeated: map[order.BuyerKey]bool{}, seen: map[string]stock.SKU{}}
	open := func(pause time.Duration, serve func([]*request)) queue {
		return queue{max: c.MaxQueue, pause: pause, mu: &s.mu, leaders: &s.leaders, serve: serve}
	}
	s.selling = open(0, s.sell)
	s.unsold = open(gatherTime, func(b []*request) { s.guard(b, s.refuse) })
	s.ending = open(0, func(b []*request) { s.guard(b, s.end) })
	s.behind = open(pollTime, func(b []*request) { s.guard(b, s.awaitRows) })
	return s
}

// await returns the answer to a request in a queue.
func (s *Seller) await(r *request) error {
	select {
	case err := <-r.answer:
		return err
	case <-r.ctx.Done():
		if s.leave(r) {
			return r.left()
		}
		return <-r.answer // the order is being decided
	}
}

// leave takes a request out of its queue, and reports whether it was in one. It enters no other.
func (s *Seller) leave(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.leaves = true
	if r.queue == nil {
		return false
	}
	i := slices.Index(r.queue.requests, r)
	r.queue.requests = slices.Delete(r.queue.requests, i, i+1)
	r.queue = nil
	return true
}

// Queued returns how many requests wait.
func (s *Seller) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.selling.requests) + len(s.unsold.requests) + len(s.ending.requests) + len(s.behind.requests)
}

// Close answers the waiting requests with lock.ErrClosed, waits for the batches that are being served, and lets no more
// requests in. Calling it again is safe.
func (s *Seller) Close() {
	s.mu.Lock()
	for _, q := range []*queue{&s.selling, &s.unsold, &s.ending, &s.behind} {
		q.closeLocked()
	}
	s.mu.Unlock()
	s.leaders.Wait()
}

// guard serves a batch. A panic leaves no request without an answer and no queue without a leader.
func (s *Seller) guard(buyers []*request, serve func([]*request) error) {
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			s.OnPanic(fmt.Errorf("%w\n%s", err, debug.Stack()))
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
