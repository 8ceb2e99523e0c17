package lock

import (
	"context"
	"time"
)

// Backend is a store that keeps leases. The Locker does everything that is the same for all stores, so that a backend is
// small. Package locktest checks a backend. Many goroutines may call its methods at once.
//
// Acquire, Renew and Release get a context with a deadline. They return by then, even if the store is silent or the driver
// knows no contexts. Wait returns as soon as its context ends.
//
// A backend never trusts a client's clock: it sends durations to the store, never points in time.
type Backend interface {
	// Acquire makes the claim's owner the holder of the key if the key is free or the owner already holds it. So a request
	// that is repeated after a lost reply, or after a Wait, finds its own lease, with the full TTL and a new fence.
	//
	// If another owner holds the key, Grant.Held is true. If c.Queue is set, the owner is then in the store's queue
	// until it is granted the key or calls Release.
	//
	// After an error, the key may have been granted or not.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Wait returns nil when the owner should ask again: a release has woken it, or g.Retry has passed.
	Wait(ctx context.Context, c Claim, g Grant) error

	// Renew gives the owner's lease its full TTL again. It raises the lease's fence to c.Fence if the fence was lower, and
	// returns it. ErrLost: the owner does not hold the key. Renew never takes a free key.
	Renew(ctx context.Context, c Claim) (fence int64, err error)

	// Release frees the key and wakes at most one owner in the store's queue. The store remembers that fences up to
	// c.Fence were used. If the owner does not hold the key, Release removes it from the queue and returns ErrLost. If a
	// driver repeats the request, the repeated release returns nil again, unless another owner has released the key since.
	Release(ctx context.Context, c Claim) error

	// Holder returns the holder of the key, without its Identity, or the zero Holder if the key is free.
	Holder(ctx context.Context, key string) (Holder, error)

	// Evict ends the lease of an owner that Holder has returned, as if it had run out. ErrLost: the owner has no lease.
	Evict(ctx context.Context, key, owner string) error

	// Close closes everything that the backend has opened. It does not close a client that the backend was given.
	Close() error
}

// Claim is a request of an owner to a Backend.
type Claim struct {
	Key   string
	Owner string        // random, for one acquisition by this process; compared whole
	TTL   time.Duration // whole milliseconds
	Queue bool          // Acquire: enter the store's queue if the key is held. Release: also remove the owner from the queue
	Fence int64         // Renew, Release: the highest fence that was used so far
}

// Grant is a Backend's answer to a claim.
type Grant struct {
	Held bool // another owner holds the key

	// Fence is higher than the fence of every earlier grant of the key, and than every Claim.Fence of Renew and
	// Release. The Locker gives the numbers that follow to its hand-offs, at most 65,535 of them and at most one for
	// each microsecond. Zero: the store mints no fences.
	Fence int64

	// Retry is the longest wait until a waiter asks again: the holder's remaining time or, if the store has to be polled, the
	// next delay.
	Retry time.Duration
}

// reservation is the time for which a released key is kept for the waiter that the release has woken.
const reservation = 500 * time.Millisecond

// fenceGap is the number by which the fence rises after a lease that ran out. Its holder may have used as many fences for
// hand-offs without reporting them to the store.
const fenceGap = 1 << 16
