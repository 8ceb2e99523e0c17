package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// Wait implements lock.Backend. It returns when the node that stands before the
// owner's is gone: nobody else is woken by that.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	p := b.known(c)
	if p == nil {
		return nil
	}
	gone, err := do(ctx, b, p, func() (<-chan struct{}, error) {
		gone, err := b.watch(p.before)
		if err == nil && b.sessions.now().id != p.session { // it stands nowhere
			err = zk.ErrSessionExpired
		}
		return gone, err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, lock.ErrLost), again(err):
		return nil
	case err != nil:
		return fmt.Errorf("zookeeper: wait: %w", err)
	}
	jitter := time.Duration(rand.Int64N(int64(g.Retry/10 + 5*time.Millisecond)))
	net := time.NewTimer(g.Retry + jitter)
	defer net.Stop()
	select {
	case <-gone:
	case <-net.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// watch returns a channel that is closed when the node is gone, or the session.
// All who wait for a node share one watch, which nothing but its end removes:
// the library knows no other way.
//
// It watches the node's children. It never has any, but that watch is called
// when the node itself goes, and is not when a renewal writes to it.
func (b *Backend) watch(path string) (<-chan struct{}, error) {
	if path == "" {
		return nil, zk.ErrNoNode
	}
	b.mu.Lock()
	gone := b.watches[path]
	b.mu.Unlock()
	if gone != nil {
		return gone, nil
	}
	b.watching.Add(1)
	_, _, events, err := b.conn.ChildrenW(path)
	if err != nil {
		b.watching.Add(-1)
		return nil, err
	}
	done := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	begun := b.background(func() {
		<-events
		b.watching.Add(-1)
		b.mu.Lock()
		if b.watches[path] == done {
			delete(b.watches, path)
		}
		b.mu.Unlock()
		close(done)
	})
	if !begun {
		return nil, lock.ErrClosed
	}
	b.watches[path] = done
	return done, nil
}
