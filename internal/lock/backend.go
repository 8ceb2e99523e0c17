package lock

import (
	"context"
	"errors"
	"fmt"
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
	// Acquire makes the claim's owner the holder of the key if nobody holds it, or if the owner holds it already:
	// asking again after a lost reply, or after a Wait, finds the owner's own lease with its full TTL and a new fence.
	//
	// If somebody else holds the key, the Grant says so. Where c.Queue is set, the owner then stands in the store's
	// line until it is granted the key or calls Release.
	//
	// An error leaves open whether the key was granted.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Wait returns nil when it is worth asking again: when the owner, which stands in line, was told so, or when the
	// time that g advises has passed.
	Wait(ctx context.Context, c Claim, g Grant) error

	// Renew gives the owner's lease its full TTL again and returns its fence, which is raised to c.Fence if it was
	// lower. ErrLost: the owner does not hold the key. Renew never takes a key that is free.
	Renew(ctx context.Context, c Claim) (fence int64, err error)

	// Release frees the key and tells at most one of those who wait in line. It remembers that fences up to c.Fence
	// were used. If the owner does not hold the key, it leaves the line and the error is ErrLost; where a driver
	// repeats requests by itself, the last one who released gets nil again.
	Release(ctx context.Context, c Claim) error

	// Close frees what the backend itself has opened. It does not close a client that it was given.
	Close() error
}

// Claim is what an owner asks of a Backend.
type Claim struct {
	Key   string
	Owner string        // random, for one acquisition by this process; compared whole
	TTL   time.Duration // whole milliseconds
	Queue bool          // Acquire: stand in line if the key is held
	Fence int64         // Renew, Release: the highest fence that was used so far
}

// Grant is a Backend's answer to a claim.
type Grant struct {
	Held bool // somebody else holds the key; the rest tells how to go on

	// Fence is higher than that of every earlier grant of the key, and than every number that Renew and Release were
	// told. The Locker numbers its hand-offs with those that follow, 65,535 at most and one for each microsecond at
	// most. Zero: the store mints none.
	Fence int64

	// Retry is how long a waiter that hears nothing should wait at most: the holder's remaining time, or the next delay
	// of a store that has to be polled.
	Retry time.Duration

	// Lost of a lease that was granted is closed when the store tells by itself that the lease is gone. Nil: it does
	// not tell, and Renew finds out.
	Lost <-chan struct{}
}

// reservation is for how long a key that was released is kept for the waiter that was woken by it.
const reservation = 500 * time.Millisecond

// fenceGap is by how much the fence has to rise when a holder's time ran out: it may have numbered as many hand-offs
// that the store knows nothing of.
const fenceGap = 1 << 16

// patience is how long an answer of the store is waited for.
func (l *Locker) patience() time.Duration { return max(l.opt.TTL/3, time.Second) }

// inTime adds ErrNoAnswer to the error of a request that has used up its time.
func inTime(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// release is one bounded attempt, independent of any caller's context.
func (l *Locker) release(c Claim) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.patience())
	defer cancel()
	return inTime(ctx, l.backend.Release(ctx, c))
}

// giveBack releases what the owner may hold, or its place in line, in the background. The caller may hold mu.
func (l *Locker) giveBack(c Claim) {
	l.work.Go(func() {
		if err := l.release(c); err != nil && !errors.Is(err, ErrLost) {
			l.retry(c)
		}
	})
}

// retry releases a claim again and again, until the store takes it back or has forgotten it by itself. One claim at a
// time is retried, so that a store that failed for many callers is not met by all of them when it is back.
func (l *Locker) retry(c Claim) {
	end := time.Now().Add(c.TTL)
	select {
	case l.retries <- struct{}{}:
		defer func() { <-l.retries }()
	case <-l.open.Done():
		return
	}
	for nap := 10 * time.Millisecond; time.Now().Before(end); nap = min(2*nap, time.Second) {
		if err := l.release(c); err == nil || errors.Is(err, ErrLost) {
			return
		}
		select {
		case <-time.After(nap):
		case <-l.open.Done():
			return
		}
	}
}
