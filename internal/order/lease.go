package order

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/lock"
)

// leases are those under which an order is sold, by SKU; none for a strategy
// without a lock.
type leases map[string]*lock.Lease

func lockKey(sku string) string { return "sku:" + sku }

// withLeases runs fn while it holds the lease of each SKU, all or none, taken in
// the order of their names. The ctx given to fn ends with any of them. Errors are
// those of lock.Locker.Do.
func withLeases(ctx context.Context, locker Locker, skus []string, fn func(ctx context.Context, held leases) error) error {
	if len(skus) == 1 {
		return locker.Do(ctx, lockKey(skus[0]), func(ctx context.Context, lease *lock.Lease) error {
			return fn(ctx, leases{skus[0]: lease})
		})
	}
	keys := make([]string, len(skus))
	for i, sku := range skus {
		keys[i] = lockKey(sku)
	}
	all, err := locker.AcquireAll(ctx, keys...)
	if err != nil {
		return err
	}
	defer all.Release() //nolint:errcheck,contextcheck // for a panic in fn; a release does not end with a context
	held := leases{}
	for i, sku := range skus {
		held[sku] = all.Lease(keys[i])
	}
	err = fn(all.Context(), held)                             //nolint:contextcheck // it is a child of ctx
	if lost := all.Release(); errors.Is(lost, lock.ErrLost) { //nolint:contextcheck // as above
		return errors.Join(err, lost)
	}
	return err
}

// fence returns the fence of a SKU's lease, 0 where there is no lease.
func (h leases) fence(sku string) int64 {
	if lease := h[sku]; lease != nil {
		return lease.Fence()
	}
	return 0
}

// check is the last look before a commit: ErrTooLate if less than margin is left
// of any lease.
func (h leases) check(margin time.Duration) error {
	for sku, lease := range h {
		if lease.Remaining() < margin {
			return fmt.Errorf("sku %q: %w", sku, ErrTooLate)
		}
	}
	return nil
}

// release gives all leases back, before whoever took them does.
func (h leases) release() {
	for _, lease := range h {
		_ = lease.Release()
	}
}

// overtake answers a refused fence. If the lease is still ours, the database
// has seen a higher number than the lock's store remembers (its clock stepped
// back after it lost its memory): the lease takes a number above that one.
func (s *Service) overtake(ctx context.Context, held leases) error {
	skus, _, err := s.stock.SKUs(ctx, slices.Sorted(maps.Keys(held)))
	if err != nil {
		return err
	}
	for _, sku := range skus {
		lease := held[sku.Name]
		if lease.Fence() > sku.Fence {
			continue
		}
		err := lease.Raise(ctx, sku.Fence)
		if err != nil && !errors.Is(err, lock.ErrLost) {
			// Whatever the lock's store said, it gave no number: nothing was written, asking again is safe.
			return fmt.Errorf("sku %q: %w: %w", sku.Name, lock.ErrNoAnswer, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
