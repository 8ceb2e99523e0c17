package lab

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// Names of the steps of a purchase. Each request takes the first, and a request that tries again takes
// some more than once.
const (
	stepBegun     = "begun"
	stepLockAsked = "lock-asked" // only with a lock, as stepLockHeld and stepReleased
	stepLockHeld  = "lock-held"
	stepContended = "lock-contended" // only in recordings
	stepHolds     = "holds"          // only in recordings: the order holds its units until it is paid
	stepRead      = "read"           // the level of a SKU is known
	stepWriting   = "writing"        // the transaction begins
	stepWritten   = "written"        // units were taken
	stepCommitted = "committed"
	stepDeadlock  = "deadlock" // of the last transaction, which runs again; its units are how many there were
	stepReleased  = "released" // not in the header of lanes, which answer before the release
)

// Taken is a step that a request has taken.
type Taken struct {
	Step string `json:"step"`
	SKU  string `json:"sku,omitempty"` // only of stepRead and stepWritten, which are taken for each line

	// Units are the units that were read as available or, where the strategy writes back a computed number, the units
	// that were written; nil for neither.
	Units *int64 `json:"units,omitempty"`

	At int64 `json:"at"` // in microseconds since 1970
}

// mark adds a step to the traces of all requests that ctx works for.
func mark(ctx context.Context, s Taken) {
	for _, t := range workIn(ctx).of {
		t.step(s)
	}
}

// markRead hands on what Levels and its like return.
func markRead(ctx context.Context, levels order.Levels, err error) (order.Levels, error) {
	for _, name := range slices.Sorted(maps.Keys(levels.SKUs)) {
		sku := levels.SKUs[name]
		mark(ctx, Taken{Step: stepRead, SKU: name, Units: &sku.Available})
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
	leases := &tracedLeases{ctx: ctx, work: workIn(ctx), name: strings.Join(keys, " ")}
	_, leases.byCommand = l.next.(wrongLock)
	leases.of.asksFor(l.asked(keys))
	mark(ctx, Taken{Step: stepLockAsked})
	err := leases.inOneStep("lock", func() (err error) {
		leases.Leases, err = ask()
		return err
	})
	if err != nil {
		return nil, err
	}
	mark(ctx, Taken{Step: stepLockHeld})
	return leases, nil
}

// inspector is a lock whose store names the holder of a key, and which can be taken from its holder.
type inspector interface {
	Holder(ctx context.Context, key string) (lock.Holder, error)
	ForceRelease(ctx context.Context, key string) (lock.Holder, error)
}

func (l tracedLocker) asked(keys []string) asked {
	store, inspects := l.next.(inspector)
	if !inspects {
		return asked{}
	}
	return asked{
		event:  RunsOut,
		holder: func(ctx context.Context) (lock.Holder, error) { return store.Holder(ctx, keys[0]) },
		end: func(ctx context.Context) (ended bool, err error) {
			for _, key := range keys {
				_, err := store.ForceRelease(ctx, key)
				if err != nil && !errors.Is(err, lock.ErrLost) { // it was released meanwhile, or does not end by time
					return ended, err
				}
				ended = ended || err == nil
			}
			return ended, nil
		},
	}
}

type tracedLeases struct {
	strategy.Leases
	ctx       context.Context //nolint:containedctx // for which they were taken
	work                      // in ctx
	name      string          // of the keys
	byCommand bool            // taking and releasing them is not a single step
	released  atomic.Bool
}

func (l *tracedLeases) Release() error {
	if l.released.Swap(true) {
		return nil
	}
	err := l.inOneStep("release", l.Leases.Release)
	for _, t := range l.of {
		switch {
		case t.dead.Load(): // nothing was sent
		case !l.shared:
			t.step(Taken{Step: stepReleased})
		case t.recorded(): // its header may be on its way
			t.add(KindStep, stepReleased, "")
		}
	}
	return err
}

// inOneStep runs do, which takes or releases the locks. The commands of the correct ones do not stop.
func (l *tracedLeases) inOneStep(what string, do func() error) error {
	if l.byCommand {
		return do()
	}
	l.of.stop(l.ctx, what+" "+l.name)
	for _, t := range l.of {
		t.change(func() { t.inside = true })
		defer t.change(func() { t.inside = false })
	}
	if l.of.died() {
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
	mark(ctx, Taken{Step: stepWriting})
	err := s.Store.InTx(ctx, func(tx order.Tx) error { return fn(tracedTx{tx, ctx}) })
	if err == nil {
		mark(ctx, Taken{Step: stepCommitted})
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
		mark(t.ctx, Taken{Step: stepWritten, SKU: sku})
	}
	return err
}

func (t tracedTx) Take(mode stock.TakeMode, take stock.Take) error {
	err := t.Tx.Take(mode, take)
	if err == nil {
		written := Taken{Step: stepWritten, SKU: take.SKU}
		if mode == stock.Overwrite || mode == stock.Optimistic {
			left := take.Seen.Available - take.Units
			written.Units = &left
		}
		mark(t.ctx, written)
	}
	return err
}
