package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// Acquire implements lock.Backend. It goes on after lost connections and sessions for as long as ctx allows.
func (b *Backend) Acquire(ctx context.Context, c lock.Claim) (lock.Grant, error) {
	return do(ctx, b, c, func(p *place) (lock.Grant, error) {
		grant, err := b.ask(ctx, p, c)
		for retryable(err) && ctx.Err() == nil && b.open.Err() == nil {
			grant, err = b.ask(ctx, p, c)
		}
		if err == nil && grant.Held && !c.Queue {
			if err = b.remove(p); errors.Is(err, lock.ErrLost) {
				err = nil
			}
		}
		return grant, err
	})
}

// ask goes once through the recipe: enter the queue, and see which node is first.
func (b *Backend) ask(ctx context.Context, p *place, c lock.Claim) (lock.Grant, error) {
	s, err := b.awaitSession(ctx)
	if err == nil {
		err = s.checkTTL(c.TTL)
	}
	if err == nil {
		err = b.authenticate()
	}
	if err != nil {
		return lock.Grant{}, err
	}
	if p.session != s.id { // the nodes of another session are gone
		p.node = node{session: s.id}
	}
	if p.doubt {
		if err := b.find(p); err != nil {
			return lock.Grant{}, err
		}
	}
	created := p.path == ""
	if created {
		if err := b.create(p); err != nil {
			return lock.Grant{}, err
		}
	}
	names, changed, err := b.queue(p.key)
	if err != nil {
		return lock.Grant{}, err
	}
	switch mine := slices.Index(names, path.Base(p.path)); {
	case mine < 0:
		p.node = node{session: s.id}
		return lock.Grant{}, errChanged
	case mine > 0:
		p.held, p.before = false, b.dir(p.key)+"/"+names[mine-1]
		return lock.Grant{Held: true, Retry: c.TTL}, nil
	}
	return b.grant(p, s, created, changed)
}

// grant makes the first in the queue the holder. Two things have to be true: the session was alive after the request
// was sent, which only a write proves, and the fence is higher than all before. Creating the node was such a write, and
// the zxid of the queue's last change is at least as high; the next holder's is higher, since the queue has changed by
// then. If an earlier request created the node, touch does the write.
func (b *Backend) grant(p *place, s session, created bool, changed int64) (lock.Grant, error) {
	fence, err := fenceOf(changed)
	if !created {
		fence, err = b.touch(p)
	}
	switch {
	case errors.Is(err, lock.ErrLost):
		p.node = node{session: s.id}
		return lock.Grant{}, errChanged
	case err != nil:
		return lock.Grant{}, err
	case b.now() != s: // the answers may be of two sessions
		return lock.Grant{}, zk.ErrSessionExpired
	}
	p.held, p.before = true, ""
	return lock.Grant{Fence: fence}, nil
}

// Wait implements lock.Backend. It returns when the node that stands before the owner's is gone: no other waiter is
// woken by that.
func (b *Backend) Wait(ctx context.Context, c lock.Claim, g lock.Grant) error {
	gone, err := do(ctx, b, c, b.watch)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, zk.ErrNoNode), retryable(err):
		return nil
	case err != nil:
		return err
	}
	select {
	case <-gone:
	case <-time.After(g.Retry + rand.N(g.Retry/10+5*time.Millisecond)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// watch returns a channel that is closed when the node before the place's is gone, or the session. It watches the node's
// children. There never are any, but unlike a watch of the node itself, which also fires at each renewal, it fires only when
// the node is deleted.
func (b *Backend) watch(p *place) (gone <-chan zk.Event, err error) {
	if p.before == "" {
		return nil, zk.ErrNoNode
	}
	_, _, gone, err = b.conn.ChildrenW(p.before)
	b.trace("watch", p.before, "OK", err)
	if err == nil && b.now().id != p.session { // its node has gone with the session
		err = zk.ErrSessionExpired
	}
	return gone, err
}

// Renew implements lock.Backend. Each renewal raises the fence. It can be raised no further than the server has
// counted: ErrFence.
func (b *Backend) Renew(ctx context.Context, c lock.Claim) (int64, error) {
	return do(ctx, b, c, func(p *place) (int64, error) {
		s := b.now()
		if !p.held || p.session != s.id {
			return 0, lock.ErrLost
		}
		if err := s.checkTTL(c.TTL); err != nil {
			return 0, err
		}
		fence, err := b.touch(p)
		if err == nil && c.Fence > fence {
			return 0, fmt.Errorf("%w: %d is above %d, and no fence can be raised beyond", ErrFence, c.Fence, fence)
		}
		return fence, err
	})
}
