package zklock

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/lock"
)

// ticket names a place.
type ticket struct{ key, owner string }

// place is what an owner has in the line of a key, from its first Acquire until it has left. Its fields belong to the
// call that has its turn: the library's calls cannot be cancelled, and one whose caller has gone must not be overtaken
// by the next.
type place struct {
	ticket
	turn chan struct{} // capacity 1: full while a call is under way

	session int64  // in which the rest is true
	path    string // of its node; empty: none known
	doubt   bool   // a node may have been made whose name got lost
	held    bool   // the key was granted
	before  string // path of the node before it

	leave   sync.Once
	leaving chan struct{} // closed when it begins to leave: no call begins after that
	left    chan struct{} // closed when it has left
	err     error         // of leaving
}

// enter forgets what was true in another session only: with it went its nodes.
func (p *place) enter(session int64) {
	if p.session != session {
		p.session = session
		p.path, p.doubt, p.held, p.before = "", false, false, ""
	}
}

// place returns the claim's place; a new one, if it had none or has left it.
func (b *Backend) place(ctx context.Context, c lock.Claim) (*place, error) {
	t := ticket{c.Key, c.Owner}
	for {
		b.mu.Lock()
		p := b.places[t]
		if p == nil {
			p = &place{
				ticket: t, turn: make(chan struct{}, 1),
				leaving: make(chan struct{}), left: make(chan struct{}),
			}
			b.places[t] = p
		}
		b.mu.Unlock()
		if !p.isLeaving() {
			return p, nil
		}
		select {
		case <-p.left:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-b.open.Done():
			return nil, lock.ErrClosed
		}
	}
}

func (p *place) isLeaving() bool {
	select {
	case <-p.leaving:
		return true
	default:
		return false
	}
}

// known returns the claim's place; nil if it has none.
func (b *Backend) known(c lock.Claim) *place {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.places[ticket{c.Key, c.Owner}]
}

// do makes a call that the library does not bound, in the place's turn. If ctx ends first, do returns, and the call
// goes on and keeps the turn. ErrLost: the place is being left.
func do[T any](ctx context.Context, b *Backend, p *place, call func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil { // nothing is begun
		return none, context.Cause(ctx)
	}
	select {
	case p.turn <- struct{}{}:
	case <-p.leaving:
		return none, lock.ErrLost
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	begun := b.background(func() {
		defer func() { <-p.turn }()
		a := answer{err: lock.ErrLost}
		if !p.isLeaving() {
			a.value, a.err = call()
		}
		answers <- a
	})
	if !begun {
		<-p.turn
		return none, lock.ErrClosed
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// Release implements lock.Backend. If ctx ends before the server has answered, the Backend goes on trying by itself
// until the node is gone or its session is: a node that is forgotten would block the key for as long as the process
// lives.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	p := b.known(c)
	if p == nil {
		return lock.ErrLost
	}
	return b.giveUp(ctx, p)
}

// giveUp waits until the place is left, by this call or another. ErrLost: it was not the holder's.
func (b *Backend) giveUp(ctx context.Context, p *place) error {
	p.leave.Do(func() {
		close(p.leaving)
		b.background(func() {
			p.err = b.remove(p)
			b.mu.Lock()
			delete(b.places, p.ticket)
			b.mu.Unlock()
			close(p.left)
		})
	})
	select {
	case <-p.left:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.open.Done():
		return lock.ErrClosed
	}
}

// remove removes the place's node, however long that takes and whatever fails. It waits for its turn, since a creation
// may still be under way; nothing else has one after it.
func (b *Backend) remove(p *place) error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	sent := false // a deletion whose answer got lost
	for nap := 10 * time.Millisecond; ; nap = min(2*nap, time.Second) {
		err := b.delete(p, sent)
		if err == nil || errors.Is(err, lock.ErrLost) {
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

// errChanged means that another client, or the server, has removed a node meanwhile.
var errChanged = errors.New("node removed by another client")

// again reports whether the request that failed so may be sent again: whether it did anything is unknown, or it did
// nothing.
func again(err error) bool {
	unknown := []error{
		zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved,
		errChanged, io.EOF, io.ErrUnexpectedEOF,
	}
	if slices.ContainsFunc(unknown, func(known error) bool { return errors.Is(err, known) }) {
		return true
	}
	var network net.Error
	return errors.As(err, &network)
}
