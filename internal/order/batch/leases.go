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
	held   strategy.Leases // nil for none
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
	ctx, giveUp := context.WithCancelCause(l.ctx) // a deadline would end the leases, too
	timer := time.AfterFunc(wait, func() { giveUp(errLeaseWait) })
	defer timer.Stop()
	held, err := s.Locker.AcquireAll(ctx, keys...)
	if err == nil {
		l.held = held
	} else {
		giveUp(err)
	}
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

// fences returns the fences of the leases for the rows of the stock, which this transaction has locked. If a row has one as
// high, either the lock's store has lost its memory, and the lease gets a higher one; or the lease has passed to another
// holder, and is used no more.
func (l *leases) fences(levels order.Levels) map[string]int64 {
	fences := map[string]int64{}
	for _, sku := range levels.SKUs {
		key := strategy.Key(sku.Name)
		if l.held == nil || l.held.Fence(key) == 0 { // it was not asked for
			continue
		}
		if l.held.Fence(key) <= sku.Fence {
			ctx, cancel := context.WithTimeout(l.ctx, retryWait)
			err := l.held.Raise(ctx, key, sku.Fence)
			cancel()
			if err != nil {
				continue
			}
		}
		fences[sku.Name] = l.held.Fence(key)
	}
	return fences
}

// release gives the leases back, and waits for that as long as for having them. The store may answer later.
func (l *leases) release() {
	if l.held == nil {
		return
	}
	s, released := l.seller, make(chan struct{})
	s.leaders.Go(func() {
		defer close(released)
		defer func() {
			if p := recover(); p != nil {
				s.OnPanic(fmt.Errorf("release leases: panic: %v\n%s", p, debug.Stack()))
			}
		}()
		_ = l.held.Release() // what is committed stays
	})
	select {
	case <-released:
	case <-time.After(s.LeaseWait):
	}
}
