package lock

import (
	"context"
	"time"
)

// Backend is a store that keeps leases. The Locker does everything that is the same for all stores, so that a backend
// is small; package locktest checks one. Its methods may be called from many goroutines at once.
//
// Acquire, Renew and Release get a context with a deadline, and return by then, also where the store is silent or the
// driver knows no contexts. Wait returns as soon as its context ends.
//
// A backend never trusts a client's clock: durations go to the store, never points in time.
type Backend interface {
	// Acquire makes the claim's owner the holder of the key if the key is free, or if the owner holds it already:
	// asking again after a lost reply, or after a Wait, finds the owner's own lease with its full TTL and a new fence.
	//
	// If another owner holds the key, Grant.Held is true. If c.Queue is set, the owner is then in the store's queue
	// until it is granted the key or calls Release.
	//
	// After an error the key may or may not have been granted.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Wait returns nil when the owner should ask again: when a release has woken it, or when g.Retry has passed.
	Wait(ctx context.Context, c Claim, g Grant) error

	// Renew gives the owner's lease its full TTL again and returns its fence, which is raised to c.Fence if it was
	// lower. ErrLost: the owner does not hold the key. Renew never takes a key that is free.
	Renew(ctx context.Context, c Claim) (fence int64, err error)

	// Release frees the key and wakes at most one owner in the store's queue. The store remembers that fences up to
	// c.Fence were used. If the owner does not hold the key, it is removed from the queue and the error is ErrLost. If
	// a driver repeats requests by itself, a repeated release returns nil again, unless another owner has released the
	// key since.
	Release(ctx context.Context, c Claim) error

	// Holder returns who holds the key, without the Identity; the zero Holder if it is free.
	Holder(ctx context.Context, key string) (Holder, error)

	// Evict ends the lease of an owner that Holder returned, as if its time had run out. ErrLost: the owner does not
	// hold the key.
	Evict(ctx context.Context, key, owner string) error

	// Close frees what the backend itself has opened. It does not close a client that it was given.
	Close() error
}

// Claim is what an owner asks of a Backend.
type Claim struct {
	Key   string
	Owner string        // random, for one acquisition by this process; compared whole
	TTL   time.Duration // whole milliseconds
	Queue bool          // Acquire: enter the store's queue if the key is held; Release: the owner may be in it, look there as well
	Fence int64         // Renew, Release: the highest fence that was used so far
}

// Grant is a Backend's answer to a claim.
type Grant struct {
	Held bool // another owner holds the key

	// Fence is higher than that of every earlier grant of the key, and than every Claim.Fence of Renew and Release. The
	// Locker numbers its hand-offs with the numbers that follow, 65,535 at most and one for each microsecond at most.
	// Zero: the store mints none.
	Fence int64

	// Retry is how long a waiter should wait at most before it asks again: the holder's remaining time, or the next
	// delay of a store that has to be polled.
	Retry time.Duration
}

// reservation is for how long a released key is kept for the waiter that the release has woken.
const reservation = 500 * time.Millisecond

// fenceGap is how much the fence has to rise after a lease that ran out: its holder may have used that many numbers for
// hand-offs, without reporting them to the store.
const fenceGap = 1 << 16
