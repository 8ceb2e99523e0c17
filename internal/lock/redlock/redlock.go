package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
)

// Backend is a lock.Backend over independent Redis servers, 6.2 or later, or
// Valkey. See the package comment for its promises.
type Backend struct {
	nodes []*node
	opt   Options
	tries tries
	sent  atomic.Int64 // requests, which are numbered: a late release must not undo a later request

	work sync.WaitGroup  // requests under way
	open context.Context // ends with Close
	shut context.CancelFunc
}

var _ lock.Backend = (*Backend)(nil)

// New returns a Backend over one client for each node. The nodes must not
// replicate each other, and should be an odd number: a fourth bears no more
// failures than three. The clients stay the caller's, to be closed after the
// Locker. New panics if there are no clients or o is invalid; see
// Options.Validate.
func New(clients []redis.UniversalClient, o Options) *Backend {
	if len(clients) == 0 {
		panic("redlock: no clients")
	}
	if err := o.Validate(); err != nil {
		panic(err)
	}
	b := &Backend{opt: o.withDefaults(), tries: tries{failed: make(map[contender]int)}}
	b.open, b.shut = context.WithCancel(context.Background())
	for _, client := range clients {
		b.nodes = append(b.nodes, newNode(client))
	}
	return b
}

// Acquire implements lock.Backend. Held means that this attempt got no quorum,
// for whatever reason: who tried at the same time cannot be told from who holds
// the key. One who waits gets an ErrTries when their tries are used up; one who
// does not gets an ErrNoQuorum if too few nodes answered.
func (b *Backend) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	began := time.Now()
	votes, err := b.ask(ctx, acquireScript, c, tally.settled)
	if votes.won() && validity(c.TTL, time.Since(began), b.opt.DriftFactor) > 0 {
		b.tries.forget(c)
		return lock.Grant{}, nil
	}
	b.send(releaseScript, c) // on all nodes; nobody waits for it
	if ctx.Err() != nil {
		b.tries.forget(c)
		return lock.Grant{}, fmt.Errorf("redlock: acquire: %w", context.Cause(ctx))
	}
	switch out := c.Queue && b.tries.count(c, b.opt.Tries); {
	case votes.won() || votes.lost() || votes.failed == 0: // enough answered, whatever became of the others
		err = nil
		if out {
			err = ErrTries
		}
	case out:
		err = fmt.Errorf("%w: %w: %w", ErrTries, ErrNoQuorum, err)
	case c.Queue:
		err = nil
	default:
		err = fmt.Errorf("%w: %w", ErrNoQuorum, err)
	}
	if err != nil {
		return lock.Grant{}, fmt.Errorf("redlock: acquire: %w", err)
	}
	return lock.Grant{Held: true, Retry: b.opt.pause()}, nil
}

// Wait implements lock.Backend: it sleeps for g.Retry.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	delay := time.NewTimer(g.Retry)
	defer delay.Stop()
	select {
	case <-delay.C:
		return nil
	case <-ctx.Done():
		b.tries.forget(c) // who comes next has tries of their own
		return ctx.Err()
	}
}

// Renew implements lock.Backend. The fence is always 0. Where too few nodes
// answer, the error is an ErrNoQuorum, and the lease may still be there.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	began := time.Now()
	votes, err := b.ask(ctx, renewScript, c, tally.certain)
	if votes.won() && validity(c.TTL, time.Since(began), b.opt.DriftFactor) <= 0 {
		return 0, fmt.Errorf("redlock: renew: %w: nothing is left of the TTL %v", ErrNoQuorum, c.TTL)
	}
	return 0, verdict("renew", votes, err)
}

// Release implements lock.Backend. It is sent to all nodes, and goes on after a
// quorum has answered. ErrNoQuorum: too few did.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	b.tries.forget(c)
	votes, err := b.ask(ctx, releaseScript, c, tally.certain)
	return verdict("release", votes, err)
}

// verdict is the error of one who asked about a key of their own.
func verdict(what string, votes tally, err error) error {
	switch {
	case votes.won():
		return nil
	case votes.lost():
		return lock.ErrLost
	}
	return fmt.Errorf("redlock: %s: %w", what, errors.Join(ErrNoQuorum, err))
}

// Close waits until what is being given back in the background has been given
// back, for two NodeTimeouts at most, and ends all requests. Those of a client
// that does not heed its context end when it does. The clients stay open.
func (b *Backend) Close() error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.work.Wait()
	}()
	defer b.shut()
	limit := time.NewTimer(2 * b.opt.NodeTimeout)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
	return nil
}
