package lab

import (
	"context"
	"sync"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// Names of the steps of a purchase, in the order in which a request takes them. It takes the first always, and some
// more than once if it tries again.
const (
	stepBegun     = "begun"
	stepLockAsked = "lock-asked" // by strategies with a lock alone, as stepLockHeld and stepReleased
	stepLockHeld  = "lock-held"
	stepRead      = "read"    // the level of a SKU is known; not where a lane sells by a snapshot
	stepWriting   = "writing" // the transaction begins
	stepWritten   = "written" // units were taken
	stepCommitted = "committed"
	stepReleased  = "released" // not by lanes, which answer before they give the lease back
)

// step is a moment in the life of a request.
type step struct {
	name string
	sku  string // of stepRead and stepWritten, which there are of each line

	// units are those that were read as available or, where the strategy writes back what it computed, those that were
	// written; nil for neither.
	units *int64
}

// mark adds a step to the traces of all requests that ctx works for.
func mark(ctx context.Context, s step) {
	for _, request := range order.Requests(ctx) {
		if t := traceIn(request); t != nil { //nolint:contextcheck // ctx works for these
			t.step(request, s) //nolint:contextcheck // it stops as long as the request's own context lasts
		}
	}
}

func markRead(ctx context.Context, levels order.Levels) {
	for _, sku := range levels.SKUs {
		mark(ctx, step{stepRead, sku.Name, &sku.Level.Available})
	}
}

// Locker returns next, with the steps of asking for, holding and releasing a lock.
func Locker(next strategy.Locker) strategy.Locker { return tracedLocker{next} }

type tracedLocker struct{ next strategy.Locker }

func (l tracedLocker) AcquireAll(ctx context.Context, keys ...string) (strategy.Leases, error) {
	mark(ctx, step{name: stepLockAsked})
	leases, err := l.next.AcquireAll(ctx, keys...)
	if err != nil {
		return nil, err
	}
	mark(ctx, step{name: stepLockHeld})
	if order.IsShared(ctx) {
		return leases, nil // a batch is answered before
	}
	return tracedLeases{leases, sync.OnceFunc(func() { mark(ctx, step{name: stepReleased}) })}, nil
}

type tracedLeases struct {
	strategy.Leases
	released func()
}

func (l tracedLeases) Release() error {
	defer l.released()
	return l.Leases.Release()
}

// Store returns next, with the steps of reading, writing and committing.
func Store(next order.Store) order.Store { return tracedStore{next} }

type tracedStore struct{ order.Store }

func (s tracedStore) Levels(ctx context.Context, skus []string) (order.Levels, error) {
	levels, err := s.Store.Levels(ctx, skus)
	markRead(ctx, levels)
	return levels, err
}

func (s tracedStore) InTx(ctx context.Context, placed *order.Draft, fn func(order.Tx) error) error {
	mark(ctx, step{name: stepWriting})
	err := s.Store.InTx(ctx, placed, func(tx order.Tx) error { return fn(tracedTx{tx, ctx}) })
	if err == nil {
		mark(ctx, step{name: stepCommitted})
	}
	return err
}

type tracedTx struct {
	order.Tx
	ctx context.Context //nolint:containedctx // of the transaction, whose calls have none
}

func (t tracedTx) LockLevels(skus []string) (order.Levels, error) {
	levels, err := t.Tx.LockLevels(skus)
	markRead(t.ctx, levels)
	return levels, err
}

func (t tracedTx) Take(mode stock.TakeMode, take stock.Take) error {
	err := t.Tx.Take(mode, take)
	if err == nil {
		written := step{name: stepWritten, sku: take.SKU}
		if mode == stock.Overwrite {
			left := take.Seen.Available - take.Units
			written.units = &left
		}
		mark(t.ctx, written)
	}
	return err
}
