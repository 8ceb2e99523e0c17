package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

const (
	// batchLimit is how many buyers are served in one transaction. Each of them waits for the whole batch, and a few
	// hundred share the cost of a commit well enough.
	batchLimit = 256

	// batchTries is how often a batch is planned: the snapshot may be stale, and an order that needs no lease may take
	// the units, or a key, first.
	batchTries = 4

	// gatherTime is how long the leader of a sold-out SKU lets buyers join before it reads, so that more refusals share
	// the reads.
	gatherTime = time.Millisecond

	// batchTimeout is the time limit of a batch if not all buyers have a deadline.
	batchTimeout = 30 * time.Second
)

// serve sells to the head of a queue: one batch, from the lease to the answers. Its error is the answer of the buyers
// that have none yet; if it is nil, lead has these sell their orders by themselves.
func (l *Lanes) serve(q *queue, b *batch, first *buyer) error {
	// The values of its context are the first buyer's, whose cancellation must not end it.
	ctx, end := context.WithCancelCause(context.WithoutCancel(first.ctx))
	stop := context.AfterFunc(l.ctx, func() { end(context.Cause(l.ctx)) })
	defer stop()
	ctx, cancel := withLatestDeadline(ctx, l.waitingContexts(q, nil))
	defer cancel()
	if l.snapshots.soldOut(q.sku) {
		time.Sleep(gatherTime)
		l.take(q, b, b.hasRoom)
		if err := l.readAndPlan(ctx, b); err != nil {
			return err
		}
		if len(b.orders) == 0 { // refusing them needs no lease: what was read is committed
			b.replyPlanned()
			return nil
		}
	}
	lease := l.acquireLease(ctx, q, b)
	defer lease.release() // after the answers about what was committed

	var earlyErr error
	left, early := l.planEarly(q, b)
	if early {
		earlyErr = l.sellEarly(ctx, q, b, lease, left)
	}
	<-lease.acquired
	if lease.err != nil {
		l.replyAllReplays(q, b)
		return lease.err
	}
	var done bool
	var err error
	if early { // before more buyers are taken: the outcome is not theirs
		done, err = l.conclude(b, earlyErr)
	}
	if !done {
		l.take(q, b, b.hasRoom)
		err = l.sellUnderLease(lease.leases, b, !early)
	}
	held := lease.leases.Context()
	if err != nil && held.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(held), err)
	}
	return err
}

// sellUnderLease places the orders of a batch while the leases are held, planned by the snapshot first if that is
// wanted. Its error is that of serve.
func (l *Lanes) sellUnderLease(leases strategy.Leases, b *batch, useSnapshot bool) error {
	ctx := leases.Context()
	for range batchTries {
		if len(b.buyers) == 0 {
			return nil
		}
		if !useSnapshot || !l.planBySnapshot(b) {
			if err := l.readAndPlan(ctx, b); err != nil {
				return err
			}
		}
		useSnapshot = false
		if len(b.orders) == 0 {
			b.replyPlanned() // all are refused
			return nil
		}
		ctx := l.Share(ctx, func() []context.Context { return contextsOf(b.orders) })
		if err := b.think(ctx); err != nil {
			return err
		}
		err := strategy.RaisingFence(ctx, l.Store, leases, []string{b.sku}, func() error {
			return l.Store.InTx(ctx, func(tx order.Tx) error {
				if err := tx.Insert(b.ordersFrom(0)...); err != nil {
					return err
				}
				return l.finish(tx, b, leases)
			})
		})
		if done, err := l.conclude(b, err); done {
			return err
		}
	}
	return nil
}

// finish is the rest of a batch's transaction, after the rows of the orders are written. It locks rows in the same
// sequence as the transaction of a single order.
func (l *Lanes) finish(tx order.Tx, b *batch, leases strategy.Leases) error {
	orders := b.ordersFrom(0)
	limits := order.NewLimits(l.MaxOpen, b.levels)
	if err := limits.Lock(tx, orders...); err != nil {
		return err
	}
	switch taken, err := tx.ClaimKeys(draftsOf(b.orders)...); {
	case err != nil:
		return err
	case len(taken) > 0:
		return order.ErrKeyTaken
	}
	fence, terms := leases.Fence(strategy.Key(b.sku)), b.levels.SKUs[0].Terms()
	err := tx.Take(stock.Fenced, stock.Take{SKU: b.sku, Units: b.units, Fence: fence, Terms: &terms})
	if err != nil {
		return fmt.Errorf("sku %q: %w", b.sku, err)
	}
	leftOut, err := limits.Check(tx, orders...)
	if err != nil {
		return err
	}
	for i, w := range b.orders {
		if w.ctx.Err() != nil {
			leftOut[i] = w.leftQueue()
		}
	}
	if len(leftOut) > 0 {
		return &leftOutError{leftOut}
	}
	var ledger []stock.Movement
	for _, o := range orders {
		ledger = append(ledger, o.Movements(stock.Reserve, func(string) int64 { return fence }, o.CreatedAt)...)
	}
	if err := tx.Record(ledger...); err != nil {
		return err
	}
	return l.InTime(leases)
}

// leftOutError says why orders of the batch, by index, are not placed: they are over a limit, or their buyers have gone.
type leftOutError struct{ orders map[int]error }

func (e *leftOutError) Error() string { return fmt.Sprintf("%d orders are left out", len(e.orders)) }

// conclude answers buyers by the outcome of a transaction. What becomes of the others:
//
//	committed                                there are none: done
//	rows of buyers locked, orders left out   planned again
//	stale plan, key taken, sold out          planned again
//	a key in progress                        sold one by one: done, without an error
//	any other error                          refused with it: done
func (l *Lanes) conclude(b *batch, err error) (done bool, _ error) {
	var leftOut *leftOutError
	var locked *order.LockedError
	switch {
	case err == nil:
		l.succeed(b)
		return true, nil
	case errors.As(err, &locked):
		for _, w := range b.buyers {
			if slices.Contains(locked.Buyers, w.draft.Buyer) {
				w.reply(answer{err: locked}) // Service waits for the row, and then sells again
			}
		}
		b.dropAnswered()
		return false, nil
	case errors.As(err, &leftOut):
		for i, w := range b.orders {
			switch err := leftOut.orders[i]; {
			case err == nil:
				continue
			case errors.Is(err, order.ErrBehind):
				b.behind = append(b.behind, w)
			default:
				w.reply(answer{err: err})
			}
			b.behind = append(b.behind, b.twins[i]...) // one of them may be placed instead
		}
		b.dropAnswered()
		return false, nil
	case errors.Is(err, order.ErrInProgress):
		return true, nil // one by one, the locked key fails the order of its own buyer alone
	case errors.Is(err, order.ErrKeyTaken), errors.Is(err, order.ErrSoldOut), errors.Is(err, order.ErrChanged), errors.Is(err, errStale):
		return false, nil
	}
	return true, err
}

// succeed answers the buyers of a committed batch.
func (l *Lanes) succeed(b *batch) {
	l.snapshots.subtract(b.sku, b.units)
	l.OnBatch(len(b.orders))
	b.replyPlanned()
}

// replyAllReplays takes all buyers of a lane whose lease could not be acquired into the batch, and answers those whose
// key is on record. Buyers who join later wait for the next attempt.
func (l *Lanes) replyAllReplays(q *queue, b *batch) {
	l.take(q, b, func(*buyer) bool { return true })
	for buyers := range slices.Chunk(b.buyers, batchLimit) {
		ctx, cancel := withLatestDeadline(l.ctx, contextsOf(buyers))
		_ = l.guard(q.sku, func() error { return l.replyReplays(ctx, buyers) }) // if it fails, they are refused, too
		cancel()
	}
}

// errStale ends an early transaction whose snapshot is out of date.
var errStale = errors.New("the plan of the batch is stale")

// planEarly plans an early transaction for the buyers in the queue, by a snapshot that may be used for the time left.
func (l *Lanes) planEarly(q *queue, b *batch) (left time.Duration, ok bool) {
	levels, left, ok := l.snapshots.get(q.sku)
	if !ok || len(b.buyers) > 0 { // if it has buyers, the stock was read for them just now
		return 0, false
	}
	b.begin(levels)
	select {
	case l.slots <- struct{}{}:
	default:
		return 0, false
	}
	l.fill(q, b)
	if len(b.orders) == 0 {
		<-l.slots
		return 0, false
	}
	return left, true
}

// fill takes buyers from the head of the queue until one does not fit into the plan of the batch. An order with a think
// time waits for the lease.
func (l *Lanes) fill(q *queue, b *batch) {
	l.take(q, b, func(w *buyer) bool { return b.hasRoom(w) && w.draft.Think == 0 && b.add(w) == nil })
}

// sellEarly is the transaction of a batch that begins before the lease is held. While it waits for the lease, it writes
// the orders of the buyers in the queue, and of those who join it.
func (l *Lanes) sellEarly(ctx context.Context, q *queue, b *batch, lease *lease, left time.Duration) error {
	defer func() { <-l.slots }()
	stale := time.NewTimer(left)
	defer stale.Stop()
	buyers := func() []context.Context {
		l.mu.Lock() // fill has it, too: a rollback may come from another goroutine
		defer l.mu.Unlock()
		return contextsOf(b.orders)
	}
	ctx, cancel := context.WithCancelCause(l.Share(ctx, buyers))
	defer cancel(nil)
	finishing := false
	err := l.Store.InTx(ctx, func(tx order.Tx) error { //nolint:contextcheck // it ends with the lease, too
		written, held := 0, false
		finishing = false // it may be run again
		for {
			orders := b.ordersFrom(written)
			if len(orders) > 0 {
				if err := tx.Insert(orders...); err != nil {
					return err
				}
				written += len(orders)
			}
			if held {
				finishing = true
				l.Share(ctx, buyers) // also those who have joined
				return l.finish(tx, b, lease.leases)
			}
			select {
			case <-lease.acquired:
				if lease.err != nil {
					return lease.err
				}
				held = true
				leaseCtx := lease.leases.Context()
				stop := context.AfterFunc(leaseCtx, func() { cancel(context.Cause(leaseCtx)) }) //nolint:contextcheck // as above
				defer stop()
				l.fill(q, b)
			case <-q.joined:
				l.fill(q, b)
			case <-stale.C:
				return errStale
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	if errors.Is(err, order.ErrStaleFence) || errors.Is(err, order.ErrBusy) && !finishing {
		return errStale // the next transaction raises the fence, or has another connection
	}
	return err
}

// planBySnapshot plans a batch by the snapshot, and reports whether that covers all of its orders.
func (l *Lanes) planBySnapshot(b *batch) bool {
	levels, _, ok := l.snapshots.get(b.sku)
	if ok {
		b.plan(levels)
	}
	return ok && len(b.refused) == 0
}

// readAndPlan reads the stock and the keys, answers replays, and plans the other orders.
//
// The stock is read before the keys: if an earlier request of a buyer took the last units, its key is on record by
// then, and the buyer gets that order instead of a refusal.
func (l *Lanes) readAndPlan(ctx context.Context, b *batch) error {
	ctx = l.Share(ctx, func() []context.Context { return contextsOf(b.buyers) })
	levels, err := l.Store.Levels(ctx, []string{b.sku})
	if err != nil && !errors.Is(err, order.ErrUnknownSKU) {
		return err
	}
	since := l.snapshots.now()
	if err := l.replyReplays(ctx, b.buyers); err != nil {
		return err
	}
	b.dropAnswered()
	if err != nil {
		return err
	}
	l.snapshots.put(levels, since)
	b.plan(levels)
	return nil
}

// replyReplays answers the buyers whose key is on record.
func (l *Lanes) replyReplays(ctx context.Context, buyers []*buyer) error {
	keys := make([]order.BuyerKey, len(buyers))
	for i, w := range buyers {
		keys[i] = w.key()
	}
	known, err := l.Store.Claims(ctx, keys...)
	if err != nil {
		return fmt.Errorf("idempotency keys: %w", err)
	}
	for _, w := range buyers {
		if claim, ok := known[w.key()]; ok {
			w.reply(answer{err: w.draft.Replay(claim)})
		}
	}
	return nil
}

// lease is the lease of a lane's SKU, or the wait for it.
type lease struct {
	cancel   context.CancelFunc
	acquired chan struct{} // closed when leases or err is set
	leases   strategy.Leases
	err      error
}

// acquireLease acquires the lease of a queue's SKU in the background.
func (l *Lanes) acquireLease(ctx context.Context, q *queue, b *batch) *lease {
	a := &lease{acquired: make(chan struct{})}
	ctx = l.Share(ctx, func() []context.Context {
		select {
		case <-a.acquired: // it is being released
			return contextsOf(b.buyers)
		default:
			return l.waitingContexts(q, b)
		}
	})
	ctx, a.cancel = context.WithCancel(ctx)
	go func() {
		defer close(a.acquired)
		a.err = l.guard(q.sku, func() (err error) {
			a.leases, err = l.Locker.AcquireAll(ctx, strategy.Key(q.sku))
			return err
		})
	}()
	return a
}

// release gives the lease back, or ends the wait for it.
func (a *lease) release() {
	select {
	case <-a.acquired:
	default:
		a.cancel()
		<-a.acquired
	}
	if a.leases != nil {
		_ = a.leases.Release() // what is committed stays
	}
	a.cancel()
}

// withLatestDeadline bounds ctx by the latest deadline of these buyers. There may be none: a buyer can leave the queue at
// any time, and others join it.
func withLatestDeadline(ctx context.Context, buyers []context.Context) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, b := range buyers {
		deadline, ok := b.Deadline()
		if !ok {
			return context.WithTimeout(ctx, batchTimeout)
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	if last.IsZero() {
		return context.WithTimeout(ctx, batchTimeout)
	}
	return context.WithDeadline(ctx, last)
}
