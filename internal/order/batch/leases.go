package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
)

// retryWait is how long a batch waits for leases that could not be had the last time.
const retryWait = 20 * time.Millisecond

var errLeaseWait = errors.New("not within the time that a batch waits for leases")

// leases are those of a batch's SKUs, all of them or none.
type leases struct {
	seller *Seller
	ctx    context.Context //nolint:containedctx // of the batch
	asked  bool
	held   strategy.Leases  // nil for none
	higher map[string]int64 // fences of rows, by SKU, that are higher than those of the leases
}

// acquire takes the leases of these SKUs, unless an attempt of the transaction has asked for leases before. After LeaseWait
// it returns without: the transaction cannot oversell. Leases that could not be had, because their holder has crashed or
// the lock's store does not answer, are hardly waited for until they can be had again.
func (l *leases) acquire(skus []string) {
	s := l.seller
	if s.Locker == nil || l.asked || len(skus) == 0 {
		return
	}
	l.asked = true
	keys, wait := make([]string, len(skus)), s.LeaseWait
	s.mu.Lock()
	for i, sku := range skus {
		keys[i] = strategy.Key(sku)
		if s.unleased[sku] {
			wait = min(wait, retryWait)
		}
	}
	s.mu.Unlock()
	held, err := s.ask(l.ctx, wait, keys)
	l.held = held
	s.OnLeases(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range skus {
		if err != nil {
			s.unleased[sku] = true
		} else {
			delete(s.unleased, sku)
		}
	}
}

// ask waits for leases until the time is over. A request to the lock's store may have its answer later: what it has been
// granted by then is given back.
func (s *Seller) ask(ctx context.Context, wait time.Duration, keys []string) (strategy.Leases, error) {
	ctx, giveUp := context.WithCancelCause(ctx) // a deadline would end the leases, too
	timer := time.AfterFunc(wait, func() { giveUp(errLeaseWait) })
	defer timer.Stop()
	granted, failed := make(chan strategy.Leases), make(chan error, 1)
	s.apart("ask for leases", func() {
		leases, err := s.Locker.AcquireAll(ctx, keys...)
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
	l.higher = map[string]int64{}
	for _, sku := range levels.SKUs {
		if l.held == nil {
			break
		}
		if fence := l.held.Fence(strategy.Key(sku.Name)); fence > sku.Fence {
			fences[sku.Name] = fence
		} else if fence > 0 { // it was asked for
			l.higher[sku.Name] = sku.Fence
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
		for sku, fence := range l.higher {
			_ = l.held.Raise(l.ctx, strategy.Key(sku), fence) // an error means that it is not held any more
		}
		_ = l.held.Release() // what is committed stays
	})
	select {
	case <-released:
	case <-time.After(s.LeaseWait):
	}
}
