package zklock

import (
	"context"

	"example.com/shop/internal/lock"
)

// ticket names a place.
type ticket struct{ key, owner string }

// place is what an owner has in the line of a key, from its first Acquire until
// it has left. Its fields belong to whoever has its turn: the library's calls
// cannot be cancelled, and one that nobody waits for any more must not be
// overtaken by the next.
type place struct {
	ticket
	turn chan struct{} // capacity 1: full while a call is under way

	session int64  // in which the rest is true
	path    string // of its node; empty: none known
	doubt   bool   // a node may have been made whose name got lost
	held    bool   // the key was granted
	before  string // path of the node before it

	left chan struct{} // guarded by Backend.mu: not nil once it leaves; closed when it has
	err  error         // of leaving
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
			p = &place{ticket: t, turn: make(chan struct{}, 1)}
			b.places[t] = p
		}
		left := p.left
		b.mu.Unlock()
		if left == nil {
			return p, nil
		}
		select {
		case <-left:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// known returns the claim's place; nil if it has none.
func (b *Backend) known(c lock.Claim) *place {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.places[ticket{c.Key, c.Owner}]
}

// leaving reports whether the place is being given up, or was.
func (b *Backend) leaving(p *place) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.left != nil
}

// do makes a call that the library does not bound, in the place's turn. If ctx
// ends first, do returns, and the call goes on and keeps the turn. ErrLost: the
// place is being left.
func do[T any](ctx context.Context, b *Backend, p *place, call func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil { // nothing is begun
		return none, context.Cause(ctx)
	}
	if b.leaving(p) { // which keeps the turn for as long as it takes
		return none, lock.ErrLost
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	b.mu.Lock()
	leaving := p.left != nil
	begun := !leaving && b.background(func() {
		defer func() { <-p.turn }()
		value, err := call()
		answers <- answer{value, err}
	})
	b.mu.Unlock()
	switch {
	case leaving:
		<-p.turn
		return none, lock.ErrLost
	case !begun:
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
