package lab

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// Names of the steps of a purchase. A request takes the first always, and some more than once if it tries again.
const (
	stepBegun     = "begun"
	stepLockAsked = "lock-asked" // by strategies with a lock alone, as stepLockHeld and stepReleased
	stepLockHeld  = "lock-held"
	stepContended = "lock-contended" // in recordings alone
	stepRead      = "read"           // the level of a SKU is known
	stepWriting   = "writing"        // the transaction begins
	stepWritten   = "written"        // units were taken
	stepCommitted = "committed"
	stepDeadlock  = "deadlock" // of the last transaction, which runs again; its units are how many there were
	stepReleased  = "released" // not in the header of lanes, which answer before the release
)

type step struct {
	name string
	sku  string // of stepRead and stepWritten, which there are of each line

	// units are those that were read as available or, where the strategy writes back what it computed, those that were
	// written; nil for neither.
	units *int64

	at int64 // when it was taken, in microseconds since 1970
}

// mark adds a step to the traces of all requests that ctx works for.
func mark(ctx context.Context, s step) {
	for _, t := range workIn(ctx).of() {
		t.step(s)
	}
}

// markRead hands on what Levels and its like return.
func markRead(ctx context.Context, levels order.Levels, err error) (order.Levels, error) {
	for _, name := range slices.Sorted(maps.Keys(levels.SKUs)) {
		sku := levels.SKUs[name]
		mark(ctx, step{name: stepRead, sku: name, units: &sku.Available})
	}
	return levels, err
}

// Locker returns next, with the steps of asking for, holding and releasing a lock.
func Locker(next strategy.Locker) strategy.Locker { return tracedLocker{next} }

type tracedLocker struct{ next strategy.Locker }

func (l tracedLocker) AcquireAll(ctx context.Context, keys ...string) (strategy.Leases, error) {
	return l.acquire(ctx, keys, func() (strategy.Leases, error) { return l.next.AcquireAll(ctx, keys...) })
}

func (l tracedLocker) AcquireWith(ctx context.Context, key string, others ...string) (strategy.Leases, error) {
	keys := append([]string{key}, others...)
	return l.acquire(ctx, keys, func() (strategy.Leases, error) { return l.next.AcquireWith(ctx, key, others...) })
}

func (l tracedLocker) acquire(ctx context.Context, keys []string, ask func() (strategy.Leases, error)) (strategy.Leases, error) {
	leases := &tracedLeases{ctx: ctx, name: strings.Join(keys, " ")}
	_, leases.byCommand = l.next.(wrongLock)
	asking := workIn(ctx).of()
	asking.asksFor(keys, l.next, RunsOut)
	mark(ctx, step{name: stepLockAsked})
	err := leases.inOneStep(asking, "lock", func() (err error) {
		leases.Leases, err = ask()
		return err
	})
	if err != nil {
		return nil, err
	}
	leases.holding = workIn(ctx).of() // others may have joined
	leases.holding.asksFor(keys, l.next, RunsOut)
	mark(ctx, step{name: stepLockHeld})
	return leases, nil
}

type tracedLeases struct {
	strategy.Leases
	ctx       context.Context //nolint:containedctx // for which they were taken
	name      string          // of the keys
	holding   traces          // of the requests that have the locks since they were taken
	byCommand bool            // taking and releasing them is not a single step
	released  atomic.Bool
}

func (l *tracedLeases) Release() error {
	if l.released.Swap(true) {
		return nil
	}
	w := workIn(l.ctx)
	holding := w.of()
	err := l.inOneStep(holding, "release", l.Leases.Release)
	for _, t := range l.holding { // also those that the batch has not sold to
		if !slices.Contains(holding, t) {
			holding = append(holding, t)
		}
	}
	for _, t := range holding {
		switch {
		case t.dead.Load(): // nothing was sent
		case !w.shared:
			t.step(step{name: stepReleased})
		case t.recorded(): // its header may be on its way
			t.add(KindStep, stepReleased, "")
		}
	}
	return err
}

// inOneStep runs do, which takes or releases the locks. The commands of the correct ones do not stop.
func (l *tracedLeases) inOneStep(all traces, what string, do func() error) error {
	if l.byCommand {
		return do()
	}
	all.stop(l.ctx, what+" "+l.name)
	for _, t := range all {
		t.change(func() { t.inside = true })
		defer t.change(func() { t.inside = false })
	}
	if all.died() {
		return ErrDied
	}
	return do()
}

// Store returns next, with the steps of reading, writing and committing.
func Store(next order.Store) order.Store { return tracedStore{next} }

type tracedStore struct{ order.Store }

func (s tracedStore) Levels(ctx context.Context, lines ...order.Line) (order.Levels, error) {
	levels, err := s.Store.Levels(ctx, lines...)
	return markRead(ctx, levels, err)
}

func (s tracedStore) InTx(ctx context.Context, fn func(order.Tx) error) error {
	mark(ctx, step{name: stepWriting})
	err := s.Store.InTx(ctx, func(tx order.Tx) error { return fn(tracedTx{tx, ctx}) })
	if err == nil {
		mark(ctx, step{name: stepCommitted})
	}
	return err
}

type tracedTx struct {
	order.Tx
	ctx context.Context //nolint:containedctx // of the transaction, whose calls have none
}

func (t tracedTx) Levels(skus []string) (order.Levels, error) {
	levels, err := t.Tx.Levels(skus)
	return markRead(t.ctx, levels, err)
}

func (t tracedTx) LockLevels(skus []string) (order.Levels, error) {
	levels, err := t.Tx.LockLevels(skus)
	return markRead(t.ctx, levels, err)
}

func (t tracedTx) TryLevels(skus []string, within time.Duration) (order.Levels, error) {
	levels, err := t.Tx.TryLevels(skus, within)
	return markRead(t.ctx, levels, err)
}

func (t tracedTx) Move(movements ...stock.Movement) error {
	err := t.Tx.Move(movements...)
	skus := map[string]bool{}
	for _, m := range movements {
		if err == nil && m.Kind == stock.Reserve {
			skus[m.SKU] = true
		}
	}
	for _, sku := range slices.Sorted(maps.Keys(skus)) {
		mark(t.ctx, step{name: stepWritten, sku: sku})
	}
	return err
}

func (t tracedTx) Take(mode stock.TakeMode, take stock.Take) error {
	err := t.Tx.Take(mode, take)
	if err == nil {
		written := step{name: stepWritten, sku: take.SKU}
		if mode == stock.Overwrite || mode == stock.Optimistic {
			left := take.Seen.Available - take.Units
			written.units = &left
		}
		mark(t.ctx, written)
	}
	return err
}
