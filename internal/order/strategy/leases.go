package strategy

import (
	"context"
	"time"

	"example.com/shop/internal/lock"
)

// Locker takes locks. Lease makes one of a *lock.Locker; the wrong locks of teaching mode are others.
type Locker interface {
	// AcquireAll takes the locks of these keys, all or none, in sorted order.
	AcquireAll(ctx context.Context, keys ...string) (Leases, error)
}

// Leases are held until Release. Those of a lock without fences have the fence 0, and those of a lock without leases
// never end by themselves.
type Leases interface {
	// Context ends when one of the leases does.
	Context() context.Context

	// Fence returns the fencing token of a key's lease.
	Fence(key string) int64

	// Raise gives the lease of a key a fence higher than above.
	Raise(ctx context.Context, key string, above int64) error

	// Remaining returns how much is left of the lease that ends first.
	Remaining() time.Duration

	// Release gives all of them back. A second call does nothing.
	Release() error
}

// Lease makes a Locker of one that hands out leases with fences.
func Lease(locker *lock.Locker) Locker { return leased{locker} }

type leased struct{ locker *lock.Locker }

func (l leased) AcquireAll(ctx context.Context, keys ...string) (Leases, error) {
	all, err := l.locker.AcquireAll(ctx, keys...)
	if err != nil {
		return nil, err
	}
	return leases{all, keys}, nil
}

type leases struct {
	*lock.Leases
	keys []string
}

func (l leases) Fence(key string) int64 { return l.Lease(key).Fence() }

func (l leases) Raise(ctx context.Context, key string, above int64) error {
	return l.Lease(key).Raise(ctx, above)
}

func (l leases) Remaining() time.Duration {
	least := l.Lease(l.keys[0]).Remaining()
	for _, key := range l.keys[1:] {
		least = min(least, l.Lease(key).Remaining())
	}
	return least
}
