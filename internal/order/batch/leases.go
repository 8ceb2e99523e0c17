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

// acquire takes the leases of these SKUs, all or none. It returns nil after LeaseWait: then the batch sells without, as its
// transaction cannot oversell. Leases that could not be had, because their holder has crashed or the lock's store does not
// answer, are hardly waited for until they can be had again.
func (s *Seller) acquire(ctx context.Context, skus []string) strategy.Leases {
	if s.Locker == nil {
		return nil
	}
	keys, wait := make([]string, len(skus)), s.LeaseWait
	s.mu.Lock()
	for i, sku := range skus {
		keys[i] = strategy.Key(sku)
		if s.unleased[sku] {
			wait = min(wait, retryWait)
		}
	}
	s.mu.Unlock()
	ctx, giveUp := context.WithCancelCause(ctx) // with a deadline, the leases would end by it
	timer := time.AfterFunc(wait, func() { giveUp(errLeaseWait) })
	defer timer.Stop()
	leases, err := s.Locker.AcquireAll(ctx, keys...)
	if err != nil {
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
	if err != nil {
		return nil
	}
	return leases
}

// release gives leases back, and waits for that as long as for having them. The store may answer later.
func (s *Seller) release(leases strategy.Leases) {
	if leases == nil {
		return
	}
	released := make(chan struct{})
	s.leaders.Go(func() {
		defer close(released)
		defer func() {
			if p := recover(); p != nil {
				s.OnPanic(fmt.Errorf("release leases: panic: %v\n%s", p, debug.Stack()))
			}
		}()
		_ = leases.Release() // what is committed stays
	})
	select {
	case <-released:
	case <-time.After(s.LeaseWait):
	}
}

// fences returns the fences of the leases for the rows of the stock, which this transaction has locked. If a row has one as
// high, either the lock's store has lost its memory, and the lease gets a higher one; or the lease has passed to another
// holder, and is used no more.
func (s *Seller) fences(ctx context.Context, leases strategy.Leases, levels order.Levels) map[string]int64 {
	fences := map[string]int64{}
	if leases == nil {
		return fences
	}
	for _, sku := range levels.SKUs {
		key := strategy.Key(sku.Name)
		if leases.Fence(key) <= sku.Fence {
			ctx, cancel := context.WithTimeout(ctx, retryWait)
			err := leases.Raise(ctx, key, sku.Fence)
			cancel()
			if err != nil {
				continue
			}
		}
		fences[sku.Name] = leases.Fence(key)
	}
	return fences
}
