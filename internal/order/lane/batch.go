package lane

import (
	"cmp"
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
	// batchLimit is how many buyers are served in one transaction. All of them wait for all: a few hundred share what a
	// commit costs well enough.
	batchLimit = 256

	// batchTries is how often a batch is planned: the snapshot may be stale, and a buyer without a lease may be faster
	// with the units, or with a key.
	batchTries = 4

	// gather is how long the leader of a SKU with nothing left lets buyers join before it reads: a refusal is in no
	// hurry, and more of them share the reads.
	gather = time.Millisecond

	// batchBound ends a batch none of whose buyers has a deadline.
	batchBound = 30 * time.Second
)

// serve sells to the head of a queue: one batch, from the lease to the answers. Its error is for the buyers of the
// batch who have no answer.
func (l *Lanes) serve(q *queue, b *batch, first *buyer) error {
	// Traces show the batch under its first buyer, whose cancellation must not end it.
	ctx, end := context.WithCancelCause(context.WithoutCancel(first.ctx))
	defer context.AfterFunc(l.ctx, func() { end(context.Cause(l.ctx)) })()
	ctx, cancel := patience(ctx, l.standing(q, nil))
	defer cancel()
	if l.snapshots.soldOut(q.sku) {
		time.Sleep(gather)
		l.take(q, func(*buyer) bool { return len(b.buyers) < batchLimit }, &b.buyers)
		if err := l.readAndPlan(ctx, b); err != nil {
			return err
		}
		if len(b.orders) == 0 { // what was read is committed: to refuse them needs no lease
			b.replyPlanned()
			return nil
		}
	}
	lease := l.askForLease(ctx, q, b)
	defer lease.release() // after the answers

	var earlyErr error
	if left, ok := l.planEarly(q, b); ok {
		if earlyErr = l.sellEarly(ctx, q, b, lease, left); earlyErr == nil {
			l.succeed(b)
			return nil
		}
	}
	if <-lease.asked; lease.err != nil {
		l.turnAway(q, b)
		return lease.err
	}
	l.take(q, func(*buyer) bool { return len(b.buyers) < batchLimit }, &b.buyers)
	err := l.sellUnderLease(lease.leases, b, earlyErr)
	if ended := lease.leases.Context(); err != nil && ended.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ended), err)
	}
	return err
}

// sellUnderLease places the orders of a batch while the leases are held. earlyErr is why its early transaction failed;
// nil if it had none. It answers all buyers, unless it fails: then the error is for those without an answer.
func (l *Lanes) sellUnderLease(leases strategy.Leases, b *batch, earlyErr error) error {
	mayReuse := earlyErr == nil // the snapshot
	if earlyErr != nil {
		if done, err := l.conclude(b, earlyErr); done {
			return err
		}
	}
	ctx := leases.Context()
	for range batchTries {
		if len(b.buyers) == 0 {
			return nil
		}
		if !mayReuse || !l.planUnread(b) {
			if err := l.readAndPlan(ctx, b); err != nil {
				return err
			}
		}
		mayReuse = false
		if len(b.orders) == 0 {
			b.replyPlanned() // all are refused
			return nil
		}
		ctx := order.WithRequests(ctx, func() []context.Context { return contextsOf(b.orders) })
		if err := b.think(ctx); err != nil {
			return err
		}
		err := strategy.RaisingFence(ctx, l.Store, leases, []string{b.sku}, func() error {
			return l.Store.InTx(ctx, b.orders[0].draft, func(tx order.Tx) error { // which tells for all: they are committed together
				b.rowsOfBuyers = true
				return cmp.Or(tx.Insert(b.inserts(0)...), l.finish(tx, b, leases))
			})
		})
		if done, err := l.conclude(b, err); done {
			return err
		}
	}
	b.replyRest(answer{single: true})
	return nil
}

// finish is the rest of a batch's transaction, behind the orders' rows. It takes its locks in the sequence in which
// that of a single order does.
func (l *Lanes) finish(tx order.Tx, b *batch, leases strategy.Leases) error {
	orders := b.inserts(0)
	limits := order.NewLimits(l.MaxOpen, b.levels)
	if err := cmp.Or(tx.ClaimKeys(draftsOf(b.orders)...), limits.Lock(tx, orders...)); err != nil {
		return err
	}
	b.rowsOfBuyers = false
	fence, terms := leases.Fence(strategy.Key(b.sku)), b.levels.SKUs[0].Terms()
	err := tx.Take(stock.Fenced, stock.Take{SKU: b.sku, Units: b.units, Fence: fence, Terms: &terms})
	if err != nil {
		return fmt.Errorf("sku %q: %w", b.sku, err)
	}
	over, err := limits.Check(tx, orders...)
	if err != nil {
		return err
	}
	if len(over) > 0 {
		return &overError{over}
	}
	var ledger []stock.Movement
	for _, o := range orders {
		movements, err := o.Movements(stock.Reserve, func(string) int64 { return fence }, o.CreatedAt)
		if err != nil {
			return err
		}
		ledger = append(ledger, movements...)
	}
	return cmp.Or(tx.Record(ledger...), l.InTime(leases))
}

// overError means that orders of the batch, by index, are over a limit.
type overError struct{ orders map[int]error }

func (e *overError) Error() string { return fmt.Sprintf("%d orders are over a limit", len(e.orders)) }

// conclude answers what a transaction decided. Without done, the buyers that are left are to be planned again; with an
// error, all of them get that.
func (l *Lanes) conclude(b *batch, err error) (done bool, _ error) {
	var over *overError
	switch {
	case err == nil:
		l.succeed(b)
		return true, nil
	case errors.As(err, &over):
		for i, err := range over.orders {
			b.orders[i].reply(answer{err: err})
		}
		b.dropAnswered()
		return false, nil
	case b.rowsOfBuyers && (errors.Is(err, order.ErrInProgress) || errors.Is(err, order.ErrBusy)):
		b.replyRest(answer{single: true}) // the buyer whose row it is waits alone
		return true, nil
	case errors.Is(err, order.ErrKeyTaken), errors.Is(err, order.ErrSoldOut), errors.Is(err, order.ErrChanged), errors.Is(err, errStale):
		return false, nil
	}
	return true, err
}

// succeed answers the buyers of a batch that is committed.
func (l *Lanes) succeed(b *batch) {
	l.snapshots.sold(b.sku, b.units)
	l.OnBatch(len(b.orders))
	b.replyPlanned()
}

// turnAway takes all who stand in a lane for which there is no lease into the batch, and answers those whose key has
// bought before with their order. Those who come meanwhile wait for the next try.
func (l *Lanes) turnAway(q *queue, b *batch) {
	l.take(q, func(*buyer) bool { return true }, &b.buyers)
	for buyers := range slices.Chunk(b.buyers, batchLimit) {
		ctx, cancel := patience(l.ctx, contextsOf(buyers))
		_ = l.guard(q.sku, func() error { return l.replyReplays(ctx, buyers) }) // where it fails, they are refused, too
		cancel()
	}
}

// errStale ends an early transaction whose plan is no good any more.
var errStale = errors.New("the plan of the batch is stale")

// planEarly plans an early transaction for the buyers who stand in the queue, by a snapshot that can be used for as
// long as left.
func (l *Lanes) planEarly(q *queue, b *batch) (left time.Duration, ok bool) {
	levels, left, ok := l.snapshots.of(q.sku)
	if !ok || len(b.buyers) > 0 { // they were planned by what was read just now
		return 0, false
	}
	b.begin(levels)
	select {
	case l.slots <- struct{}{}:
	default:
		return 0, false
	}
	if l.fill(q, b); len(b.orders) == 0 {
		<-l.slots
		return 0, false
	}
	return left, true
}

// fill takes buyers from the head of the queue whose orders fit into the plan of the batch. They are in no hurry: a
// buyer of teaching mode who thinks waits until the lease is held.
func (l *Lanes) fill(q *queue, b *batch) {
	l.take(q, func(w *buyer) bool {
		return len(b.buyers) < batchLimit && w.draft.Think == 0 && b.add(w) == nil
	}, &b.buyers)
}

// sellEarly is the transaction of a batch that begins before the lease is held. While it waits, it writes the orders of
// those who stand in the queue, also of those who join it.
func (l *Lanes) sellEarly(ctx context.Context, q *queue, b *batch, lease *lease, left time.Duration) error {
	defer func() { <-l.slots }()
	stale := time.NewTimer(left)
	defer stale.Stop()
	ctx, cancel := context.WithCancelCause(order.WithRequests(ctx, func() []context.Context { return contextsOf(b.orders) }))
	defer cancel(nil)
	err := l.Store.InTx(ctx, b.orders[0].draft, func(tx order.Tx) error { //nolint:contextcheck // it ends with the lease, too
		b.rowsOfBuyers = true
		written := 0
		for held := false; ; {
			if orders := b.inserts(written); len(orders) > 0 {
				if err := tx.Insert(orders...); err != nil {
					return err
				}
				written += len(orders)
			}
			if held {
				return l.finish(tx, b, lease.leases)
			}
			select {
			case <-lease.asked:
				if lease.err != nil {
					return lease.err
				}
				held = true
				over := lease.leases.Context()
				defer context.AfterFunc(over, func() { cancel(context.Cause(over)) })() //nolint:contextcheck // as above
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
	if errors.Is(err, order.ErrStaleFence) {
		return errStale // the next transaction raises the fence
	}
	return err
}

// planUnread plans a batch by the snapshot, if all can have what they want by it.
func (l *Lanes) planUnread(b *batch) bool {
	levels, _, ok := l.snapshots.of(b.sku)
	if ok {
		b.plan(levels)
	}
	return ok && len(b.refused) == 0
}

// readAndPlan reads the stock and the keys, answers replays, and plans what the others are sold.
//
// The stock is read first: a request that took the missing units then had its key on record before, and no buyer is
// refused the units that its own twin has bought.
func (l *Lanes) readAndPlan(ctx context.Context, b *batch) error {
	ctx = order.WithRequests(ctx, func() []context.Context { return contextsOf(b.buyers) })
	levels, err := l.Store.Levels(ctx, []string{b.sku})
	if err != nil && !errors.Is(err, order.ErrUnknownSKU) {
		return err
	}
	if err := l.replyReplays(ctx, b.buyers); err != nil {
		return err
	}
	b.dropAnswered()
	if err != nil {
		return err
	}
	l.snapshots.saw(levels)
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

// lease is the lease of a lane's SKU, from when it is asked for.
type lease struct {
	cancel context.CancelFunc
	asked  chan struct{} // closed when it is held, or err says why not
	leases strategy.Leases
	err    error
}

// askForLease asks for the lease of a queue's SKU beside what follows.
func (l *Lanes) askForLease(ctx context.Context, q *queue, b *batch) *lease {
	ctx = order.WithRequests(ctx, func() []context.Context { return l.standing(q, b) })
	a := &lease{asked: make(chan struct{})}
	ctx, a.cancel = context.WithCancel(ctx)
	go func() {
		defer close(a.asked)
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
	case <-a.asked:
	default:
		a.cancel()
		<-a.asked
	}
	if a.leases != nil {
		_ = a.leases.Release() // the orders are committed and answered
	}
	a.cancel()
}

// patience bounds a ctx by the last deadline of these buyers.
func patience(ctx context.Context, buyers []context.Context) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, b := range buyers {
		deadline, ok := b.Deadline()
		if !ok {
			return context.WithTimeout(ctx, batchBound)
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return context.WithDeadline(ctx, last)
}
