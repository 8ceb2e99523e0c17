package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
)

// retryWait is how long a batch waits for leases that could not be had the last time.
const retryWait = 20 * time.Millisecond

var errLeaseWait = errors.New("not within the time that a batch waits for leases")

// leases are what a batch was granted for its SKUs.
type leases struct {
	seller *Seller
	ctx    context.Context //nolint:containedctx // of the batch
	asked  bool
	held   strategy.Leases  // nil for none
	raise  map[string]int64 // fences of rows, by SKU, that the leases do not exceed
}

// acquire waits for the lease of the SKU that most orders of the batch want, and takes the leases of its other SKUs that are
// free. The transaction waits for the rows of the rest. After LeaseWait it returns without any, as the transaction cannot oversell.
// A lease that could not be had, because its holder has crashed or the lock's store does not answer, is hardly waited for
// until it can be had again. A further attempt of the transaction keeps what the first was given.
func (l *leases) acquire(b *batch) {
	s := l.seller
	if s.Locker == nil || l.asked || len(b.orders) == 0 {
		return
	}
	l.asked = true
	sku, others := b.wanted()
	wait := s.LeaseWait
	s.mu.Lock()
	if s.unleased[sku] {
		wait = min(wait, retryWait)
	}
	s.mu.Unlock()
	held, err := s.ask(l.ctx, wait, sku, others)
	l.held = held
	s.OnLeases(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unleased, sku)
	if err != nil {
		s.unleased[sku] = true
	}
}

// wanted returns the SKU that most orders want, and the others.
func (b *batch) wanted() (most string, others []string) {
	orders := map[string]int{}
	for _, r := range b.orders {
		for _, line := range r.order().Lines {
			orders[line.SKU]++
		}
	}
	others = slices.SortedFunc(maps.Keys(orders), func(a, b string) int {
		return cmp.Or(cmp.Compare(orders[b], orders[a]), cmp.Compare(a, b))
	})
	return others[0], others[1:]
}

// ask waits for leases until the time is over. A request to the lock's store may have its answer later: what it has been
// granted by then is given back.
func (s *Seller) ask(ctx context.Context, wait time.Duration, sku string, others []string) (strategy.Leases, error) {
	keys := make([]string, len(others))
	for i, other := range others {
		keys[i] = strategy.Key(other)
	}
	ctx, giveUp := context.WithCancelCause(ctx) // a deadline would end the leases, too
	timer := time.AfterFunc(wait, func() { giveUp(errLeaseWait) })
	defer timer.Stop()
	granted, failed := make(chan strategy.Leases), make(chan error, 1)
	s.apart("ask for leases", func() {
		leases, err := s.Locker.AcquireWith(ctx, strategy.Key(sku), keys...)
		if err != nil {
			failed <- err
			return
		}
		select {
		case granted <- leases:
		case <-ctx.Done():
			_ = leases.Release() // the locker retries it
		}
	})
	select {
	case leases := <-granted:
		return leases, nil
	case err := <-failed:
		giveUp(err)
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// apart runs a step in a goroutine, so that a batch need not wait for its end.
func (s *Seller) apart(what string, step func()) {
	s.leaders.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				s.OnPanic(fmt.Errorf("%s: panic: %v\n%s", what, p, debug.Stack()))
			}
		}()
		step()
	})
}

// fences returns the fences of the leases for the rows of the stock, which this transaction has locked. A row that has one
// as high is sold without: either the lease has passed to another holder, or the lock's store has lost its memory, and gets
// a higher one with the release.
func (l *leases) fences(levels order.Levels) map[string]int64 {
	fences := map[string]int64{}
	if l.held == nil {
		return fences
	}
	l.raise = map[string]int64{}
	for _, sku := range levels.SKUs {
		if fence := l.held.Fence(strategy.Key(sku.Name)); fence > sku.Fence {
			fences[sku.Name] = fence
		} else if fence > 0 { // it is held
			l.raise[sku.Name] = sku.Fence
		}
	}
	return fences
}

// release gives the leases back, and waits for that as long as for having them. The store may answer later.
func (l *leases) release() {
	if l.held == nil {
		return
	}
	s, released := l.seller, make(chan struct{})
	s.apart("release leases", func() {
		defer close(released)
		for sku, fence := range l.raise {
			_ = l.held.Raise(l.ctx, strategy.Key(sku), fence) // an error means that it is not held any more
		}
		_ = l.held.Release() // what is committed stays
	})
	select {
	case <-released:
	case <-time.After(s.LeaseWait):
	}
}
