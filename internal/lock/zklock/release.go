package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// Release implements lock.Backend. If ctx ends before the server has answered,
// the Backend goes on trying by itself until the node is gone or its session is:
// a node that nobody wants would block the key for as long as the process lives.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	p := b.known(c)
	if p == nil {
		return lock.ErrLost
	}
	err := b.leave(ctx, p)
	if err != nil && !errors.Is(err, lock.ErrLost) {
		return fmt.Errorf("zookeeper: release: %w", err)
	}
	return err
}

// leave waits until the place is given up, by whoever began that. ErrLost: it was
// not the holder's.
func (b *Backend) leave(ctx context.Context, p *place) error {
	b.mu.Lock()
	if p.left == nil {
		left := make(chan struct{})
		begun := b.background(func() {
			p.err = b.remove(p)
			b.mu.Lock()
			delete(b.places, p.ticket)
			b.mu.Unlock()
			close(left)
		})
		if !begun {
			b.mu.Unlock()
			return lock.ErrClosed
		}
		p.left = left
	}
	b.mu.Unlock()
	select {
	case <-p.left:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// remove removes the place's node, however long that takes. It waits for its
// turn, since a creation may still be under way; nobody else has one after it.
func (b *Backend) remove(p *place) error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	sent := false // a deletion whose answer got lost
	for nap := 10 * time.Millisecond; ; nap = min(2*nap, time.Second) {
		err := b.delete(p, sent)
		if !again(err) {
			return err
		}
		sent = sent || p.path != ""
		select {
		case <-time.After(nap):
		case <-b.open.Done():
			return lock.ErrClosed
		}
	}
}

func (b *Backend) delete(p *place, sent bool) error {
	if b.sessions.now().id != p.session {
		return lock.ErrLost
	}
	if p.doubt {
		if err := b.find(p); err != nil {
			return err
		}
	}
	if p.path == "" {
		return lock.ErrLost
	}
	err := b.conn.Delete(p.path, -1)
	if sent && errors.Is(err, zk.ErrNoNode) {
		err = nil // it was that deletion
	}
	if errors.Is(err, zk.ErrNoNode) || err == nil && !p.held {
		return lock.ErrLost
	}
	return err
}
