// Package lane sells to many buyers of a SKU with one lease and one commit.
//
// The buyers of a SKU on one instance wait in a queue, the SKU's lane, in the order of their arrival. A leader takes
// the lease of the SKU, sells to all buyers in the queue by then, 256 at most, in one transaction, answers each, and
// gives the lease back:
//
//	lease -> read stock and keys -> plan -> one transaction {orders, buyers, keys, one
//	update of the units, limits, movements} -> commit -> answers -> release
//
// Consecutive batches reuse the snapshot of the stock, for a second at most: if it covers all orders of a batch,
// nothing is read, and the transaction compares. The update requires the units, the price and the limit of the
// snapshot; the keys are primary keys. Where the plan proves stale, the batch reads after all: the snapshot is used
// only to accept orders, never to refuse them. Such a batch also begins its transaction while it waits for the lease,
// and writes its orders, rows that no other transaction waits for, and those of buyers who arrive meanwhile. On a store
// with one writer, the lease comes first.
//
// A lone buyer is served at once: no batch waits to be filled, except for a millisecond where all units were sold. One failed order
// does not fail the batch: a repeated key is answered with its order, an order over a limit is left out (and is the next
// batch's if it is over it only with others of the batch, which may yet fail), and so is one whose buyer's row another
// transaction has locked: order.Service waits for the row and sells that order again. Between two batches the lease is
// given back, so that other instances can take it.
//
// A buyer whose ctx ends in the queue leaves it, and nothing was changed. One that a batch has taken waits for the
// result; the batch has the latest deadline of the buyers in the queue when it begins. An order is left out if the ctx of
// its buyer has ended before the units are locked: the client may have sent the request to another instance meanwhile,
// and been refused there. An order of several SKUs is sold by itself, under the same leases.
//
// Where the last batch found nothing left, the next one reads stock and keys before it asks for the lease, and refuses
// all of its buyers if that is still so: refusing a crowd costs two reads for each 256 buyers.
package lane

import (
	"cmp"
	"container/list"
	"context"
	"embed"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
)

// Sources are the files of this package, without its tests, to be shown in lessons.
//
//go:embed batch.go lane.go plan.go snapshots.go
var Sources embed.FS

// Config is what lanes need. Its functions may be nil; they are called by many goroutines at once, and must not block.
type Config struct {
	strategy.Shop
	Locker strategy.Locker

	// MaxQueue is how many buyers of one SKU may wait in this instance; 0 means 10,000, as in lock.Options.
	MaxQueue int

	// Early is how many lanes at a time may begin a transaction before they have the lease. Each keeps a connection of
	// the store. Use 0 for a store with one writer.
	Early int

	Now         func() time.Time // the clock of this process; nil for time.Now
	SnapshotFor time.Duration    // how long a snapshot of the stock may be reused; 0 means a second

	// Share returns the ctx of a step that is taken for several buyers at once, so that an observer of the Store and the
	// Locker knows for whom: buyers returns the ctx of the Sell of each, at any moment of the step. It is called again
	// when others have joined.
	Share func(ctx context.Context, buyers func() []context.Context) context.Context

	OnWait  func(ctx context.Context) // called with the ctx of a Sell when its buyer waits in a queue
	OnBatch func(orders int)          // called with the number of orders that one transaction placed, while the lease is held
	OnPanic func(err error)           // called with a panic and its stack; the batch's buyers get an error without a code
}

// Lanes are the lanes of one instance. They may be used by many goroutines at once.
type Lanes struct {
	Config
	single    order.Strategy // for orders that cannot be sold in a batch
	snapshots *snapshots
	slots     chan struct{} // has an element for each early transaction that runs

	ctx     context.Context //nolint:containedctx // of all leaders; ends with Close
	cancel  context.CancelCauseFunc
	leaders sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*queue // by SKU; each has a leader
	closed bool
}

// queue holds the waiting buyers of one SKU. Its leader runs as long as it exists.
type queue struct {
	list.List // of *buyer
	sku       string
	joined    chan struct{} // has an element when a buyer has joined
}

// buyer is one call of Sell that waits for its answer.
type buyer struct {
	ctx   context.Context //nolint:containedctx // the buyer's own
	draft *order.Draft
	place *list.Element // nil when it is in no queue; guarded by Lanes.mu

	answered bool        // belongs to the leader
	answer   chan answer // capacity 1
}

// answer is the result of a buyer's order.
type answer struct {
	err    error
	single bool // the order has to be sold by itself
}

func (w *buyer) key() order.BuyerKey { return order.BuyerKey{Buyer: w.draft.Buyer, Key: w.draft.Key} }

func (w *buyer) units() int64 { return w.draft.Lines[0].Units }

func (w *buyer) reply(a answer) {
	w.answered = true
	w.answer <- a // never blocks: there is one answer
}

// New returns the lanes of one instance.
func New(c Config) *Lanes {
	c.MaxQueue, c.SnapshotFor = cmp.Or(c.MaxQueue, 10_000), cmp.Or(c.SnapshotFor, time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &Lanes{
		Config:    c,
		single:    order.Replaying{Store: c.Store, Next: strategy.Redis{Shop: c.Shop, Locker: c.Locker}},
		snapshots: &snapshots{keep: c.SnapshotFor, now: c.Now, bySKU: map[string]snapshot{}},
		slots:     make(chan struct{}, c.Early),
		ctx:       ctx, cancel: cancel,
		queues: map[string]*queue{},
	}
	if l.Share == nil {
		l.Share = func(ctx context.Context, _ func() []context.Context) context.Context { return ctx }
	}
	if l.OnWait == nil {
		l.OnWait = func(context.Context) {}
	}
	if l.OnBatch == nil {
		l.OnBatch = func(int) {}
	}
	if l.OnPanic == nil {
		l.OnPanic = func(error) {}
	}
	return l
}

// Sell places an order of one SKU in its lane, and any other by itself.
func (l *Lanes) Sell(ctx context.Context, d *order.Draft) error {
	if len(d.Lines) > 1 {
		return l.single.Sell(ctx, d)
	}
	w := &buyer{ctx: ctx, draft: d, answer: make(chan answer, 1)}
	if err := l.join(w); err != nil { //nolint:contextcheck // the leader also serves other buyers
		return err
	}
	var a answer
	select {
	case a = <-w.answer:
	case <-ctx.Done():
		if l.leave(w) {
			return w.leftQueue()
		}
		a = <-w.answer
	}
	if a.single {
		return l.single.Sell(ctx, d)
	}
	return a.err
}

// leftQueue is the error of a buyer whose ctx ended in the queue.
func (w *buyer) leftQueue() error {
	err := fmt.Errorf("lane of sku %q: %w: %w: %w", w.draft.Lines[0].SKU, lock.ErrNotAcquired, w.ctx.Err(), context.Cause(w.ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", lock.ErrTimeout, err)
	}
	return err
}

// Close answers the waiting buyers with lock.ErrClosed, ends batches before their COMMIT and waits for those in it, and lets
// no more buyers in. Calling it again is safe. Close it before the Locker.
func (l *Lanes) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel(lock.ErrClosed)
	l.leaders.Wait()
}

// Queued returns how many buyers wait in the lanes of this instance.
func (l *Lanes) Queued() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queues {
		n += q.Len()
	}
	return n
}

// join puts a buyer at the end of its lane. The first one starts the leader.
func (l *Lanes) join(w *buyer) error {
	sku := w.draft.Lines[0].SKU
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("lane of sku %q: %w: %w", sku, lock.ErrNotAcquired, lock.ErrClosed)
	}
	q := l.queues[sku]
	if q == nil {
		q = &queue{sku: sku, joined: make(chan struct{}, 1)}
		l.queues[sku] = q
		l.leaders.Go(func() { l.lead(q) })
	}
	if q.Len() >= l.MaxQueue {
		return fmt.Errorf("lane of sku %q: %w: %w", sku, lock.ErrNotAcquired, lock.ErrQueueFull)
	}
	w.place = q.PushBack(w)
	l.OnWait(w.ctx)
	select {
	case q.joined <- struct{}{}:
	default:
	}
	return nil
}

// lead serves a lane until its queue is empty.
func (l *Lanes) lead(q *queue) {
	for first := l.head(q); first != nil; first = l.head(q) {
		b := &batch{sku: q.sku}
		err := l.guard(q.sku, func() error { return l.serve(q, b, first) })
		b.replyRest(answer{err: err, single: err == nil})
		l.putBack(q, b.behind)
	}
}

// putBack puts buyers back at the head of a queue.
func (l *Lanes) putBack(q *queue, buyers []*buyer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range slices.Backward(buyers) {
		w.place = q.PushFront(w)
	}
}

// leave removes a buyer from its lane and reports whether it was still there. If not, the leader answers it.
func (l *Lanes) leave(w *buyer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.place == nil {
		return false
	}
	l.removeLocked(l.queues[w.draft.Lines[0].SKU], w)
	return true
}

func (l *Lanes) removeLocked(q *queue, w *buyer) {
	q.Remove(w.place)
	w.place = nil
}

// head returns the first buyer of a queue. If there is none, it removes the queue and returns nil: the next buyer
// starts a new one.
func (l *Lanes) head(q *queue) *buyer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := q.Front(); first != nil {
		return first.Value.(*buyer) //nolint:forcetypeassert // nothing else is put in
	}
	delete(l.queues, q.sku)
	return nil
}

// take moves buyers from the head of a queue to a batch until accept, which may plan them at once, refuses one. Buyers
// whose ctx has ended are answered.
func (l *Lanes) take(q *queue, b *batch, accept func(*buyer) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := q.Front(); e != nil; e = q.Front() {
		w := e.Value.(*buyer) //nolint:forcetypeassert // as in head
		switch {
		case w.ctx.Err() != nil:
			w.reply(answer{err: w.leftQueue()})
		case accept(w):
			b.buyers = append(b.buyers, w)
		default:
			return
		}
		l.removeLocked(q, w)
	}
}

// guard runs f and returns its panic as an error, which OnPanic gets with the stack: a panic leaves no buyer without an
// answer and no lane without a leader.
func (l *Lanes) guard(sku string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("lane of sku %q: panic: %v", sku, p)
			l.OnPanic(fmt.Errorf("%w\n%s", err, debug.Stack()))
		}
	}()
	return f()
}

// waitingContexts returns the contexts of the buyers of a batch and of those behind it in the queue.
func (l *Lanes) waitingContexts(q *queue, b *batch) (all []context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b != nil {
		all = contextsOf(b.buyers)
	}
	for e := q.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*buyer).ctx) //nolint:forcetypeassert // as in head
	}
	return all
}

func contextsOf(buyers []*buyer) []context.Context {
	all := make([]context.Context, 0, len(buyers))
	for _, w := range buyers {
		all = append(all, w.ctx)
	}
	return all
}
