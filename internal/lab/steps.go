package lab

import (
	"context"
	"sync"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// mark adds steps to the traces of all requests that ctx works for.
func mark(ctx context.Context, steps ...Step) {
	for _, request := range order.Requests(ctx) {
		if t := traceIn(request); t != nil { //nolint:contextcheck // ctx works for these
			for _, s := range steps {
				t.step(request, s) //nolint:contextcheck // it stops as long as the request's own context lasts
			}
		}
	}
}

func markRead(ctx context.Context, levels order.Levels) {
	for _, sku := range levels.SKUs {
		mark(ctx, Step{Name: StepRead, SKU: sku.Name, Units: sku.Level.Available, Known: true})
	}
}

// Locker returns next, with the steps of asking for, holding and releasing a lock.
func Locker(next strategy.Locker) strategy.Locker { return tracedLocker{next} }

type tracedLocker struct{ next strategy.Locker }

func (l tracedLocker) AcquireAll(ctx context.Context, keys ...string) (strategy.Leases, error) {
	mark(ctx, Step{Name: StepLockAsked})
	leases, err := l.next.AcquireAll(ctx, keys...)
	if err != nil {
		return nil, err
	}
	mark(ctx, Step{Name: StepLockHeld})
	if order.IsShared(ctx) {
		return leases, nil // a batch is answered before
	}
	return tracedLeases{leases, sync.OnceFunc(func() { mark(ctx, Step{Name: StepReleased}) })}, nil
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
	mark(ctx, Step{Name: StepWriting})
	err := s.Store.InTx(ctx, placed, func(tx order.Tx) error { return fn(tracedTx{tx, ctx}) })
	if err == nil {
		mark(ctx, Step{Name: StepCommitted})
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
		written := Step{Name: StepWritten, SKU: take.SKU}
		if mode == stock.Overwrite {
			written.Units, written.Known = take.Seen.Available-take.Units, true
		}
		mark(t.ctx, written)
	}
	return err
}
