package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// MaxKeys is how many keys AcquireAll takes.
const MaxKeys = 100

// Leases are the leases on several keys, taken together.
type Leases struct {
	sorted []*Lease
	ctx    context.Context
}

// AcquireAll waits for the leases of all keys, all or none. Duplicates count
// once. The keys are taken in sorted order, so that two callers never wait for
// each other; in a cluster each may be in another slot.
//
// The error is Acquire's, for the key that failed.
func (l *Locker) AcquireAll(ctx context.Context, keys ...string) (*Leases, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, notAcquired("", fmt.Errorf("%w: %d keys, want 1 to %d", ErrKey, len(keys), MaxKeys))
	}
	all := &Leases{ctx: ctx}
	for _, key := range keys {
		lease, err := l.Acquire(all.ctx, key)
		if err != nil {
			return nil, errors.Join(err, all.Release())
		}
		// Each context is a child of the one before: the last ends with any.
		all.sorted, all.ctx = append(all.sorted, lease), lease.Context()
	}
	return all, nil
}

// Context ends when any of the leases ends.
func (a *Leases) Context() context.Context { return a.ctx }

// Lease returns the lease on one of the keys, nil for any other key.
func (a *Leases) Lease(key string) *Lease {
	i, ok := slices.BinarySearchFunc(a.sorted, key, func(e *Lease, key string) int {
		return strings.Compare(e.Key(), key)
	})
	if !ok {
		return nil
	}
	return a.sorted[i]
}

// Release gives all keys back at the same time, each as Lease.Release does. Its
// error joins those of the leases.
func (a *Leases) Release() error {
	errs := make([]error, len(a.sorted))
	var all sync.WaitGroup
	for i, lease := range a.sorted {
		all.Go(func() { errs[i] = lease.Release() })
	}
	all.Wait()
	return errors.Join(errs...)
}
