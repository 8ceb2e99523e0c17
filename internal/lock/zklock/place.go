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

// ticket identifies a place.
type ticket struct{ key, owner string }

// place is an owner's place in the queue of a key, from its first Acquire until it has left. Its fields belong to the
// call that holds turn: the library's calls cannot be cancelled, and the next call has to wait for one whose caller has
// gone.
type place struct {
	ticket
	turn chan struct{} // capacity 1: full while a call is under way

	session int64  // for which the fields below hold
	path    string // of its node; empty: none known
	doubt   bool   // a node may exist whose name was lost with the answer
	held    bool   // the key was granted
	before  string // path of the node before it

	leave   sync.Once
	leaving chan struct{} // closed when it begins to leave; no call begins after that
	left    chan struct{} // closed when it has left
	err     error         // of leaving
}

func newPlace(t ticket) *place {
	return &place{ticket: t, turn: make(chan struct{}, 1), leaving: make(chan struct{}), left: make(chan struct{})}
}

// enter clears the state of another session, whose nodes are gone.
func (p *place) enter(session int64) {
	if p.session != session {
		p.session = session
		p.path, p.doubt, p.held, p.before = "", false, false, ""
	}
}

// place returns the claim's place, or a new one if it has none or has left it.
func (b *Backend) place(ctx context.Context, c lock.Claim) (*place, error) {
	t := ticket{c.Key, c.Owner}
	for {
		b.mu.Lock()
		p := b.places[t]
		if p == nil {
			p = newPlace(t)
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

// do runs a call of the library, which has no time limit, while it holds the place's turn. If ctx ends first, do
// returns, and the call goes on and keeps the turn. ErrLost: the place is being left.
func do[T any](ctx context.Context, b *Backend, p *place, call func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil { // begin nothing
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

// Release implements lock.Backend. If ctx ends before the server has answered, the Backend goes on in the background
// until the node or its session is gone: a node that stays would block the key for as long as the process lives.
func (b *Backend) Release(ctx context.Context, c lock.Claim) error {
	p := b.known(c)
	if p == nil {
		return lock.ErrLost
	}
	return b.leave(ctx, p)
}

// leave waits until the place is left, by this call or another. ErrLost: it was not the holder's.
func (b *Backend) leave(ctx context.Context, p *place) error {
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

// remove deletes the place's node, and tries again after a failure until it is gone. It waits for the turn, since a
// creation may still be under way; no call begins after it.
func (b *Backend) remove(p *place) error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	sent := false // a deletion was sent whose answer was lost
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

// errChanged means that another client, or the server, has removed a node in the meantime.
var errChanged = errors.New("node removed by another client")

// retryable reports whether a request may be sent again after this error: it had no effect, or whether it had one is
// unknown.
func retryable(err error) bool {
	unknown := []error{
		zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved,
		errChanged, io.EOF, io.ErrUnexpectedEOF,
	}
	if slices.ContainsFunc(unknown, func(known error) bool { return errors.Is(err, known) }) {
		return true
	}
	_, network := errors.AsType[net.Error](err)
	return network
}
