package strategy

import (
	"context"
	"time"

	"example.com/shop/internal/lock"
)

// Locker takes locks. Lease adapts a *lock.Locker; the wrong locks of the teaching shop implement it as well.
type Locker interface {
	// AcquireAll takes the locks of these keys, all or none, in sorted order.
	AcquireAll(ctx context.Context, keys ...string) (Leases, error)

	// AcquireWith takes the lock of a key, and then those of the others that are free.
	AcquireWith(ctx context.Context, key string, others ...string) (Leases, error)
}

// Leases are held until Release. A lock without fences returns the fence 0, and a lock without a TTL never ends by
// itself.
type Leases interface {
	// Context ends when one of the leases does.
	Context() context.Context

	// Fence returns the fencing token of a key's lease, 0 for a key that is not held.
	Fence(key string) int64

	// Raise gives the lease of a key a fence that is higher than above.
	Raise(ctx context.Context, key string, above int64) error

	// Remaining returns the time left of the lease that ends first.
	Remaining() time.Duration

	// Release releases all of them. A second call does nothing.
	Release() error
}

// Lease returns a Locker that takes the leases of a *lock.Locker.
func Lease(locker *lock.Locker) Locker { return leased{locker} }

type leased struct{ *lock.Locker }

func (l leased) AcquireAll(ctx context.Context, keys ...string) (Leases, error) {
	all, err := l.Locker.AcquireAll(ctx, keys...)
	if err != nil {
		return nil, err
	}
	return leases{all, keys}, nil
}

func (l leased) AcquireWith(ctx context.Context, key string, others ...string) (Leases, error) {
	all, err := l.Locker.AcquireWith(ctx, key, others...)
	if err != nil {
		return nil, err
	}
	return leases{all, []string{key}}, nil
}

type leases struct {
	*lock.Leases
	keys []string
}

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
