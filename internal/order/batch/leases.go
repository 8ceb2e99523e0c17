package batch

import (
	"context"
	"time"

	"example.com/shop/internal/order/strategy"
)

// retryWait is the time for which a batch waits for a lease that was not granted the last time.
const retryWait = 20 * time.Millisecond

// leases are the leases of a batch's SKUs.
type leases struct {
	seller *Seller
	locker strategy.Locker // nil to sell without leases
	ctx    context.Context //nolint:containedctx // of the batch
	asked  bool
	held   strategy.Leases    // nil for none
	cancel context.CancelFunc // ends the wait, and then the renewals, of which one may still follow
}

// acquire waits for the lease of the first SKU, and takes the leases of the other SKUs that are free. The transaction
// waits for the rows of the rest. After LeaseWait, acquire returns without a lease, because the transaction cannot
// oversell. After a failed wait for the lease of a SKU, batches wait for it only for retryWait, until one gets it;
// after two failed waits in a row, so do the waits for all leases. A further attempt of the transaction keeps the
// leases of the first.
func (l *leases) acquire(skus []string) {
	s := l.seller
	if l.locker == nil || l.asked || len(skus) == 0 {
		return
	}
	l.asked = true
	keys := make([]string, len(skus))
	for i, sku := range skus {
		keys[i] = strategy.Key(sku)
	}
	wait := s.LeaseWait
	s.mu.Lock()
	if s.unleased[skus[0]] || s.failures > 1 {
		wait = min(wait, retryWait)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.ctx, wait)
	l.cancel = cancel
	held, err := l.locker.AcquireWith(ctx, keys[0], keys[1:]...)
	if s.OnLeases != nil {
		s.OnLeases(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.unleased[skus[0]] = true
		s.failures++
		return
	}
	l.held = held
	delete(s.unleased, skus[0])
	s.failures = 0
}

// release releases the leases. It waits for LeaseWait at most; a slower release goes on in the background.
func (l *leases) release() {
	if l.cancel != nil {
		defer l.cancel()
	}
	if l.held == nil {
		return
	}
	released := make(chan struct{})
	l.seller.leaders.Go(func() {
		defer close(released)
		_ = l.held.Release() // an error does not change what is committed
	})
	select {
	case <-released:
	case <-time.After(l.seller.LeaseWait):
	}
}
