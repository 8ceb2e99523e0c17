package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// Acquire implements lock.Backend. It goes on after lost connections and sessions for as long as ctx allows.
func (b *Backend) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	for {
		p, err := b.place(ctx, c)
		if err != nil {
			return lock.Grant{}, err
		}
		grant, err := do(ctx, b, p, func() (grant lock.Grant, err error) {
			for grant, err = b.ask(ctx, p, c); retryable(err) && ctx.Err() == nil && b.open.Err() == nil; {
				grant, err = b.ask(ctx, p, c)
			}
			return grant, err
		})
		switch {
		case errors.Is(err, lock.ErrLost): // the owner was leaving
			continue
		case err != nil || !grant.Held || c.Queue:
			return grant, err
		}
		if err := b.leave(ctx, p); !errors.Is(err, lock.ErrLost) {
			return grant, err
		}
		return grant, nil
	}
}

// ask goes once through the recipe: enter the queue, and see which node is first.
func (b *Backend) ask(ctx context.Context, p *place, c lock.Claim) (lock.Grant, error) {
	s, err := b.sessions.wait(ctx, b.open)
	if err != nil {
		return lock.Grant{}, err
	}
	if err := s.checkTTL(c.TTL); err != nil {
		return lock.Grant{}, err
	}
	held := lock.Grant{Held: true, Retry: c.TTL}
	p.enter(s.id)
	if p.doubt {
		if err := b.find(p); err != nil {
			return lock.Grant{}, err
		}
	}
	created := p.path == ""
	if created && !c.Queue {
		if others, err := b.line(p.key); len(others) > 0 || err != nil {
			return held, err
		}
	}
	if created {
		if err := b.create(p); err != nil {
			return lock.Grant{}, err
		}
	}
	children, stat, err := b.conn.Children(b.dir(p.key))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return lock.Grant{}, err
	}
	next, ok := before(children, path.Base(p.path))
	switch {
	case b.sessions.now() != s: // the answers may be of two sessions
		return lock.Grant{}, zk.ErrSessionExpired
	case !ok:
		p.path, p.held = "", false
		return lock.Grant{}, errChanged
	case next != "":
		p.held, p.before = false, b.dir(p.key)+"/"+next
		return held, nil
	}
	return b.grant(p, s, created, stat.Pzxid)
}

// grant makes the first in the queue the holder. Two things have to be true: the session was alive after the request
// was sent, which only a write proves, and the fence is higher than all before. Creating the node was such a write, and
// the zxid of the queue's last change is at least as high; the next holder's is higher, since the queue has changed by
// then. If an earlier request created the node, touch does the write.
func (b *Backend) grant(p *place, s session, created bool, changed int64) (lock.Grant, error) {
	if !created {
		zxid, err := b.touch(p)
		if errors.Is(err, lock.ErrLost) {
			p.path, p.held = "", false
			err = errChanged
		}
		if err != nil {
			return lock.Grant{}, err
		}
		changed = zxid
	}
	if b.sessions.now() != s {
		return lock.Grant{}, zk.ErrSessionExpired
	}
	fence, err := fenceOf(changed)
	if err != nil {
		return lock.Grant{}, err
	}
	p.held, p.before = true, ""
	return lock.Grant{Fence: fence, Lost: s.ended}, nil
}

// Wait implements lock.Backend. It returns when the node that stands before the owner's is gone: no other waiter is
// woken by that.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	p := b.known(c)
	if p == nil {
		return nil
	}
	gone, err := do(ctx, b, p, func() (<-chan struct{}, error) {
		gone, err := b.watch(p.before)
		if err == nil && b.sessions.now().id != p.session { // its node has gone with the session
			err = zk.ErrSessionExpired
		}
		return gone, err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, lock.ErrLost), retryable(err):
		return nil
	case err != nil:
		return err
	}
	jitter := time.Duration(rand.Int64N(int64(g.Retry/10 + 5*time.Millisecond)))
	select {
	case <-gone:
	case <-time.After(g.Retry + jitter):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// watch returns a channel that is closed when the node is gone, or the session. All waiters for a node share one watch,
// since the library cannot remove a watch.
//
// It watches the node's children. There never are any, but unlike a watch of the node itself, which also fires at each
// renewal, it fires only when the node is deleted.
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
	_, _, events, err := b.conn.ChildrenW(path)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	b.mu.Lock()
	b.watches[path] = done
	b.mu.Unlock()
	begun := b.background(func() {
		<-events
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
	return done, nil
}

// Renew implements lock.Backend. Each renewal raises the fence. It can be raised no further than the server has
// counted: ErrFence.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	p := b.known(c)
	if p == nil {
		return 0, lock.ErrLost
	}
	return do(ctx, b, p, func() (int64, error) {
		s := b.sessions.now()
		if !p.held || p.session != s.id {
			return 0, lock.ErrLost
		}
		if err := s.checkTTL(c.TTL); err != nil {
			return 0, err
		}
		zxid, err := b.touch(p)
		if err != nil {
			return 0, err
		}
		fence, err := fenceOf(zxid)
		if err == nil && c.Fence > fence {
			return 0, fmt.Errorf("%w: %d is above %d, and no fence can be raised beyond", ErrFence, c.Fence, fence)
		}
		return fence, err
	})
}
