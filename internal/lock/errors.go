package lock

import "errors"

var (
	// ErrNotAcquired means that the caller does not hold the lock. It is joined with the reason: the context's error,
	// ErrHeld, ErrTimeout, ErrQueueFull, ErrClosed, ErrNoAnswer, or the store's own error.
	ErrNotAcquired = errors.New("lock not acquired")

	// ErrHeld is the reason of TryAcquire: another caller holds the key, or asks for it in this process.
	ErrHeld = errors.New("held by another caller")

	// ErrLost means that the lease ended before its release: it ran out, or the store says that another owner has the key.
	ErrLost = errors.New("lease lost")

	// ErrReleased is the cause of a lease's context after Release.
	ErrReleased = errors.New("lease released")

	// ErrTimeout means that the wait took longer than Options.MaxWait or than the deadline of the caller's context, whose
	// error is then joined.
	ErrTimeout = errors.New("waited too long")

	// ErrNoAnswer means that the store did not answer a request in time.
	ErrNoAnswer = errors.New("store did not answer in time")

	// ErrQueueFull means that Options.MaxQueue callers of this process already wait for the key.
	ErrQueueFull = errors.New("too many waiters in this process")

	// ErrClosed means that the Locker was closed.
	ErrClosed = errors.New("locker closed")

	// ErrKey means that the key is empty, is longer than MaxKey, or starts with a closing brace, which would scatter the
	// names for one key over a Redis Cluster.
	ErrKey = errors.New("unusable key")
)
