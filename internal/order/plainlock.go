package order

import (
	"context"
	"slices"
)

// PlainLocker is a lock without leases: it has no fence, is not renewed, and its
// holder never hears that it is over.
type PlainLocker interface {
	// Lock waits for the key. unlock gives it back, and is to be called once.
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// withPlainLocks runs fn while it holds the lock of each SKU, taken in the order
// of their names.
func withPlainLocks(ctx context.Context, locker PlainLocker, skus []string, fn func(ctx context.Context, held leases) error) error {
	for _, sku := range slices.Sorted(slices.Values(skus)) {
		unlock, err := locker.Lock(ctx, lockKey(sku))
		if err != nil {
			return err
		}
		defer unlock()
	}
	return fn(ctx, nil)
}
